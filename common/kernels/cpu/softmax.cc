#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/math.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/softmax.cc"
#include "hwy/foreach_target.h"
//
#include "common/kernels/cpu/reduce-inl.h"
#include "hwy/highway.h"

#ifndef D2L_COMMON_KERNELS_CPU_SOFTMAX_CC_
#define D2L_COMMON_KERNELS_CPU_SOFTMAX_CC_
namespace d2l::kernels::cpu {

// Throws unless all labels are classes.
inline void CheckLabels(const std::int64_t* labels, std::int64_t begin,
                        std::int64_t end, std::int64_t classes) {
  for (std::int64_t i = begin; i < end; ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    throw std::out_of_range(absl::StrFormat(
        "label %d of sample %d is out of range; there are %d classes, from 0 "
        "on",
        labels[i], i, classes));
  }
}

}  // namespace d2l::kernels::cpu
#endif  // D2L_COMMON_KERNELS_CPU_SOFTMAX_CC_

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

using SoftmaxFunction = void (*)(void* out, const void* in, std::int64_t outer,
                                 std::int64_t size, std::int64_t inner);

// softmax(x) = e / sum(e) and log softmax(x) = (x - max) - log(sum(e)), where e
// = exp(x - max). A row that contains NaN or +infinity, or only -infinity,
// needs no special case: at least one difference is NaN, so the sum and all
// results are. out may be in: an element is written after it has been read.

// HWY_FLATTEN: without inlining, Exp and Log would be compiled for the oldest
// processor and compute one element at a time.

// The work that is worth a thread, in elements.
constexpr std::int64_t kGrain = 4096;

// The number by which each element is multiplied, or that is subtracted.
template <bool kLog, typename T>
HWY_INLINE T Last(T sum) {
  return kLog ? math::Log(sum) : 1 / sum;
}

// ---- Rows of up to kBlock elements, as many at a time as make a block: then
// the slowest loop, that of Exp, is long even if the rows are not.
template <typename T, bool kLog>
struct ShortRows {
  T* out;
  const T* in;
  std::int64_t n;

  void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t at_once = std::max<std::int64_t>(kBlock<T> / n, 1);
    for (std::int64_t row = begin; row < end; row += at_once) {
      Rows(out + row * n, in + row * n, std::min(at_once, end - row));
    }
  }

  HWY_FLATTEN void Rows(T* y, const T* x, std::int64_t rows) const {
    T buffer[kLog ? kBlock<T> : 1];
    T* const e = kLog ? buffer : y;
    for (std::int64_t r = 0; r < rows; ++r) {
      const T max = BlockFirst<Larger>(x + r * n, n);
      D2L_INDEPENDENT
      for (std::int64_t i = r * n; i < (r + 1) * n; ++i) y[i] = x[i] - max;
    }
    D2L_INDEPENDENT
    for (std::int64_t i = 0; i < rows * n; ++i) e[i] = math::Exp(y[i]);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T last = Last<kLog>(static_cast<T>(BlockSum(e + r * n, n)));
      D2L_INDEPENDENT
      for (std::int64_t i = r * n; i < (r + 1) * n; ++i) {
        y[i] = kLog ? y[i] - last : e[i] * last;
      }
    }
  }
};

// ---- Longer rows, in parts: threads share the rows of one part, and the parts
// of longer rows. The cuts are the same whether threads share them or not.
constexpr std::int64_t kRowPart = 65536;

template <typename T>
struct MaxOfParts {
  const T* x;
  std::int64_t n;
  T* maxima;

  void operator()(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t part = begin; part < end; ++part) {
      T max = Larger::Last<T>();
      const std::int64_t stop = std::min(n, (part + 1) * kRowPart);
      for (std::int64_t i = part * kRowPart; i < stop; i += kBlock<T>) {
        max = First<Larger>(
            max, BlockFirst<Larger>(x + i, std::min(kBlock<T>, stop - i)));
      }
      maxima[part] = max;
    }
  }
};

template <typename T, bool kLog>
struct ExpOfParts {
  T* out;  // not written if kLog
  const T* x;
  std::int64_t n;
  T max;
  double* sums;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    T buffer[kBlock<T>];
    for (std::int64_t part = begin; part < end; ++part) {
      double sum = 0;
      const std::int64_t stop = std::min(n, (part + 1) * kRowPart);
      for (std::int64_t i = part * kRowPart; i < stop; i += kBlock<T>) {
        const std::int64_t count = std::min(kBlock<T>, stop - i);
        T* const e = kLog ? buffer : out + i;
        D2L_INDEPENDENT
        for (std::int64_t j = 0; j < count; ++j)
          e[j] = math::Exp(x[i + j] - max);
        sum += BlockSum(e, count);
      }
      sums[part] = sum;
    }
  }
};

template <typename T, bool kLog>
struct FinishParts {
  T* out;
  const T* x;
  std::int64_t n;
  T max;
  T last;

  void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t stop = std::min(n, end * kRowPart);
    D2L_INDEPENDENT
    for (std::int64_t i = begin * kRowPart; i < stop; ++i) {
      out[i] = kLog ? (x[i] - max) - last : out[i] * last;
    }
  }
};

template <typename T, bool kLog>
struct LongRows {
  T* out;
  const T* in;
  std::int64_t n;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t parts = (n + kRowPart - 1) / kRowPart;
    std::vector<T> maxima(static_cast<std::size_t>(parts));
    std::vector<double> sums(static_cast<std::size_t>(parts));
    for (std::int64_t row = begin; row < end; ++row) {
      T* const y = out + row * n;
      const T* const x = in + row * n;
      ParallelFor(parts, 1, MaxOfParts<T>{x, n, maxima.data()});
      T max = maxima[0];
      for (const T m : maxima) max = First<Larger>(max, m);
      ParallelFor(parts, 1, ExpOfParts<T, kLog>{y, x, n, max, sums.data()});
      double sum = 0;
      for (const double s : sums) sum += s;
      const T last = Last<kLog>(static_cast<T>(sum));
      ParallelFor(parts, 1, FinishParts<T, kLog>{y, x, n, max, last});
    }
  }
};

// ---- Columns, a tile of neighbours at a time.

// The largest number of columns: a strip of a tile stays in the first cache.
constexpr std::int64_t kSoftmaxTile = 128;

template <typename T, bool kLog>
struct Columns {
  T* out;
  const T* in;
  std::int64_t size;
  std::int64_t inner;
  std::int64_t tile;
  std::int64_t tiles;

  void operator()(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % tiles * tile;
      const std::int64_t offset = i / tiles * size * inner + column;
      Tile(out + offset, in + offset, std::min(tile, inner - column));
    }
  }

  HWY_FLATTEN void Tile(T* y, const T* x, std::int64_t width) const {
    std::int64_t offsets[kStrip];
    for (int r = 0; r < kStrip; ++r) offsets[r] = r * inner;
    T max[kSoftmaxTile];
    double sum[kSoftmaxTile];
    for (std::int64_t j = 0; j < width; ++j) {
      max[j] = Larger::Last<T>();
      sum[j] = 0;
    }
    for (std::int64_t row = 0; row < size; row += kStrip) {
      StripFirst<Larger>(x + row * inner, offsets, Rows(row), width, max);
    }
    T buffer[kLog ? kStrip * kSoftmaxTile : 1];
    for (int r = 0; kLog && r < kStrip; ++r) offsets[r] = r * width;
    for (std::int64_t row = 0; row < size; row += kStrip) {
      const int rows = Rows(row);
      T* const e = kLog ? buffer : y + row * inner;
      for (int r = 0; r < rows; ++r) {
        const T* const from = x + (row + r) * inner;
        T* const to = e + offsets[r];
        D2L_INDEPENDENT
        for (std::int64_t j = 0; j < width; ++j)
          to[j] = math::Exp(from[j] - max[j]);
      }
      StripSum(e, offsets, rows, width, sum);
    }
    T last[kSoftmaxTile];
    for (std::int64_t j = 0; j < width; ++j) {
      last[j] = Last<kLog>(static_cast<T>(sum[j]));
    }
    for (std::int64_t row = 0; row < size; ++row) {
      const T* const from = x + row * inner;
      T* const to = y + row * inner;
      D2L_INDEPENDENT
      for (std::int64_t j = 0; j < width; ++j) {
        to[j] = kLog ? (from[j] - max[j]) - last[j] : to[j] * last[j];
      }
    }
  }

  int Rows(std::int64_t row) const {
    return static_cast<int>(std::min<std::int64_t>(kStrip, size - row));
  }
};

template <typename T, bool kLog>
void Softmax(void* out_memory, const void* in_memory, std::int64_t outer,
             std::int64_t size, std::int64_t inner) {
  T* const out = static_cast<T*>(out_memory);
  const T* const in = static_cast<const T*>(in_memory);
  if (outer == 0 || size == 0 || inner == 0) return;
  if (inner > 1) {
    // All rows of a tile fit the second cache.
    constexpr std::int64_t kCached = 262144 / sizeof(T);
    constexpr std::int64_t kLine = 64 / sizeof(T);
    const std::int64_t fit = kCached / size / kLine * kLine;
    const std::int64_t tile = std::min(std::max(fit, kLine), kSoftmaxTile);
    const std::int64_t tiles = (inner + tile - 1) / tile;
    const std::int64_t work = size * std::min(tile, inner);
    ParallelFor(outer * tiles, std::max<std::int64_t>(kGrain / work, 1),
                Columns<T, kLog>{out, in, size, inner, tile, tiles});
  } else if (size <= kBlock<T>) {
    ParallelFor(outer, std::max<std::int64_t>(kGrain / size, 1),
                ShortRows<T, kLog>{out, in, size});
  } else {
    const LongRows<T, kLog> rows = {out, in, size};
    if (size <= kRowPart) {
      ParallelFor(outer, 1, rows);
    } else {
      rows(0, outer);
    }
  }
}

template <typename T>
SoftmaxFunction FunctionOf(bool log) {
  return log ? Softmax<T, true> : Softmax<T, false>;
}

SoftmaxFunction ChooseSoftmax(DType dtype, bool log) {
  return dtype == DType::kFloat64 ? FunctionOf<double>(log)
                                  : FunctionOf<float>(log);
}

// ---- Cross-entropy.

// The number of samples at a time: then the slowest loop, that of Exp, is long
// even if there are few classes.
template <typename T>
std::int64_t SamplesAtOnce(std::int64_t classes) {
  return std::max<std::int64_t>(kBlock<T> / classes, 1);
}
inline std::int64_t SamplesGrain(std::int64_t classes) {
  constexpr std::int64_t kLogits = 4096;
  return kLogits / std::max<std::int64_t>(classes, 1) + 1;
}

// e = exp(x - max) of rows of n, and their maxima.
template <typename T>
HWY_INLINE void ExpOfRows(T* HWY_RESTRICT e, T* HWY_RESTRICT maxima,
                          const T* HWY_RESTRICT x, std::int64_t rows,
                          std::int64_t n) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T max = BlockFirst<Larger>(x + r * n, n);
    maxima[r] = max;
    for (std::int64_t i = r * n; i < (r + 1) * n; ++i) e[i] = x[i] - max;
  }
  for (std::int64_t i = 0; i < rows * n; ++i) e[i] = math::Exp(e[i]);
}

template <typename T>
HWY_INLINE T RowSum(const T* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kBlock<T>) {
    sum += BlockSum(x + i, std::min(kBlock<T>, n - i));
  }
  return static_cast<T>(sum);
}

template <typename T>
struct CrossEntropyOf {
  CrossEntropyArgs args;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    CheckLabels(args.labels, begin, end, args.classes);
    const std::int64_t n = args.classes;
    const std::int64_t at_once = std::min(SamplesAtOnce<T>(n), end - begin);
    std::vector<T> e(static_cast<std::size_t>(at_once * n));
    std::vector<T> maxima(static_cast<std::size_t>(at_once));
    const T* const logits = static_cast<const T*>(args.logits);
    T* const out = static_cast<T*>(args.out);
    for (std::int64_t i = begin; i < end; i += at_once) {
      const std::int64_t rows = std::min(at_once, end - i);
      ExpOfRows(e.data(), maxima.data(), logits + i * n, rows, n);
      for (std::int64_t r = 0; r < rows; ++r) {
        const T x = logits[(i + r) * n + args.labels[i + r]];
        out[i + r] = math::Log(RowSum(e.data() + r * n, n)) - (x - maxima[r]);
      }
    }
  }
};

template <typename T>
struct CrossEntropyGradientOf {
  CrossEntropyArgs args;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    CheckLabels(args.labels, begin, end, args.classes);
    const std::int64_t n = args.classes;
    const std::int64_t at_once = std::min(SamplesAtOnce<T>(n), end - begin);
    std::vector<T> maxima(static_cast<std::size_t>(at_once));
    const T* const dy = static_cast<const T*>(args.dy);
    const T* const logits = static_cast<const T*>(args.logits);
    for (std::int64_t i = begin; i < end; i += at_once) {
      const std::int64_t rows = std::min(at_once, end - i);
      T* const out = static_cast<T*>(args.out) + i * n;
      ExpOfRows(out, maxima.data(), logits + i * n, rows, n);
      for (std::int64_t r = 0; r < rows; ++r) {
        T* const row = out + r * n;
        const T sum = RowSum(row, n);
        const T g = dy[i + r];
        const std::int64_t label = args.labels[i + r];
        const T at_label = (row[label] / sum - 1) * g;
        const T factor = g / sum;
        for (std::int64_t j = 0; j < n; ++j) row[j] *= factor;
        row[label] = at_label;
      }
    }
  }
};

template <typename T>
void RunAs(const CrossEntropyArgs& args) {
  const std::int64_t grain = SamplesGrain(args.classes);
  if (args.dy == nullptr) {
    ParallelFor(args.samples, grain, CrossEntropyOf<T>{args});
  } else {
    ParallelFor(args.samples, grain, CrossEntropyGradientOf<T>{args});
  }
}

void RunCrossEntropy(const CrossEntropyArgs& args) {
  args.dtype == DType::kFloat64 ? RunAs<double>(args) : RunAs<float>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(ChooseSoftmax);
HWY_EXPORT(RunCrossEntropy);

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const SoftmaxArgs& args) {
  const auto function =
      HWY_DYNAMIC_DISPATCH(ChooseSoftmax)(args.dtype, args.log);
  return stream.Enqueue(
      label, [function, out = args.out, in = args.in, outer = args.outer,
              size = args.size,
              inner = args.inner] { function(out, in, outer, size, inner); });
}

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const CrossEntropyArgs& args) {
  return stream.Enqueue(label, [args] {
    HWY_DYNAMIC_DISPATCH(RunCrossEntropy)(args);
  });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
