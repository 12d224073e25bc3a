#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/running_values.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/nn/batch_norm.cc"
#include "hwy/foreach_target.h"
//
#include "common/kernels/cpu/reduce-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

// The work that is worth a thread, in elements.
constexpr std::int64_t kBatchNormGrain = 16384;

// ---- Sums over a channel. The order depends neither on the threads, which
// share the channels, nor on the kind of vector: a block, which is whole images
// or a part of a large one, is added into lanes, and the lanes are added as a
// tree; then the blocks are added in double precision.

constexpr int kChannelLanes = 16;

// Whole images of `inner` elements make a block, or parts of one.
template <typename T>
struct Blocks {
  explicit Blocks(std::int64_t inner)
      : images(std::max<std::int64_t>(kBlock<T> / inner, 1)),
        length(std::min(kBlock<T>, inner)) {}
  std::int64_t images, length;
};

// A vector type of the compiler: it would take an array apart and put it
// together again at each row.
template <typename T>
struct LanesOf {
  typedef T Type __attribute__((vector_size(kChannelLanes * sizeof(T))));
};
template <typename T>
using Lanes = typename LanesOf<T>::Type;

// x[0], …, x[n - 1], at most kChannelLanes; the other lanes are `rest`.
template <typename T>
HWY_INLINE void Load(Lanes<T>& lanes, const T* x, std::int64_t n, T rest) {
  if (n >= kChannelLanes) {
    std::memcpy(&lanes, x, sizeof(lanes));
  } else {
    for (int j = 0; j < kChannelLanes; ++j) lanes[j] = j < n ? x[j] : rest;
  }
}

template <typename T>
HWY_INLINE T SumOf(const Lanes<T>& lanes) {
  T array[kChannelLanes];
  std::memcpy(array, &lanes, sizeof(array));
  return SumLanes<kChannelLanes>(array);
}

template <typename T>
HWY_INLINE void AddRow(Lanes<T>& lanes, const T* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kChannelLanes) {
    Lanes<T> row;
    Load(row, x + i, n - i, T{0});
    lanes += row;
  }
}

// Adds y * (x - center).
template <typename T>
HWY_INLINE void AddProducts(Lanes<T>& lanes, const T* y, const T* x, T center,
                            std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kChannelLanes) {
    Lanes<T> first, second;
    Load(first, y + i, n - i, T{0});
    Load(second, x + i, n - i, center);
    lanes += first * (second - center);
  }
}

// Adds x - center, and the squares of it.
template <typename T>
HWY_INLINE void AddDeviations(Lanes<T>& differences, Lanes<T>& squares,
                              const T* x, T center, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kChannelLanes) {
    Lanes<T> row;
    Load(row, x + i, n - i, center);
    row -= center;
    differences += row;
    squares += row * row;
  }
}

template <typename T>
struct BatchNormStatisticsOf {
  BatchNormArgs args;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t inner = args.inner;
    const std::int64_t step = args.channels * inner;  // to the next image
    const Blocks<T> blocks(inner);
    T* const out = static_cast<T*>(args.out);
    const RunningValues<T> running(args);
    for (std::int64_t c = begin; c < end; ++c) {
      // Blocks have deviations from their own mean; Chan's formula merges them.
      double mean = 0, deviations = 0, seen = 0;
      for (std::int64_t m = 0; m < args.batch; m += blocks.images) {
        const std::int64_t images = std::min(blocks.images, args.batch - m);
        for (std::int64_t i = 0; i < inner; i += blocks.length) {
          const T* const x =
              static_cast<const T*>(args.x) + m * step + c * inner + i;
          const std::int64_t n = std::min(blocks.length, inner - i);
          const double count = static_cast<double>(images * n);
          Lanes<T> lanes = {};
          for (std::int64_t k = 0; k < images; ++k)
            AddRow(lanes, x + k * step, n);
          // The sum of large numbers of type T is rounded, so this is near
          // the mean; the deviations from it, which are small, say how near.
          const T center = static_cast<T>(SumOf<T>(lanes) / count);
          Lanes<T> differences = {}, squares = {};
          for (std::int64_t k = 0; k < images; ++k) {
            AddDeviations(differences, squares, x + k * step, center, n);
          }
          const double correction = SumOf<T>(differences) / count;
          const double difference = center + correction - mean;
          const double share = count / (seen + count);
          mean += difference * share;
          deviations += SumOf<T>(squares) - correction * correction * count +
                        difference * difference * seen * share;
          seen += count;
        }
      }
      out[c] = static_cast<T>(mean);
      // Rounding can make it negative; NaN stays.
      const double variance = deviations / seen;
      out[args.channels + c] = static_cast<T>(variance < 0 ? 0 : variance);
      running.Update(c, out[c], out[args.channels + c]);
    }
  }
};

// 1 / sqrt(variance + eps).
template <typename T>
HWY_INLINE T Inverse(const void* statistics, std::int64_t channels,
                     std::int64_t channel, double eps) {
  const T variance = static_cast<const T*>(statistics)[channels + channel];
  return static_cast<T>(1 / std::sqrt(static_cast<double>(variance) + eps));
}

template <typename T>
struct BatchNormSumsOf {
  BatchNormArgs args;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t inner = args.inner;
    const std::int64_t step = args.channels * inner;
    const Blocks<T> blocks(std::max<std::int64_t>(inner, 1));
    T* const out = static_cast<T*>(args.out);
    for (std::int64_t c = begin; c < end; ++c) {
      const T mean = static_cast<const T*>(args.statistics)[c];
      double sum = 0, sum_of_products = 0;
      for (std::int64_t m = 0; m < args.batch; m += blocks.images) {
        const std::int64_t images = std::min(blocks.images, args.batch - m);
        for (std::int64_t i = 0; i < inner; i += blocks.length) {
          const std::int64_t n = std::min(blocks.length, inner - i);
          Lanes<T> lanes = {};
          Lanes<T> products = {};
          for (std::int64_t k = m; k < m + images; ++k) {
            const std::int64_t at = k * step + c * inner + i;
            const T* const dy = static_cast<const T*>(args.dy) + at;
            AddRow(lanes, dy, n);
            AddProducts(products, dy, static_cast<const T*>(args.x) + at, mean,
                        n);
          }
          sum += SumOf<T>(lanes);
          sum_of_products += SumOf<T>(products);
        }
      }
      out[c] = static_cast<T>(sum);
      out[args.channels + c] = static_cast<T>(
          sum_of_products *
          Inverse<T>(args.statistics, args.channels, c, args.eps));
    }
  }
};

// ---- Element by element: in each row, `inner` elements of one channel,
//   out = (x - center) * factor + (dy * dy_factor + offset).

template <typename T>
struct Terms {
  T center, factor, dy_factor, offset;
};

template <typename T, bool kGradient>
struct BatchNormRows {
  std::int64_t channels, inner;
  const Terms<T>* terms;  // of each channel
  T* out;
  const T* x;
  const T* dy;  // if kGradient

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    std::int64_t channel = begin % channels;
    for (std::int64_t row = begin; row < end; ++row) {
      const Terms<T> t = terms[channel];
      const std::int64_t at = row * inner;
      T* const HWY_RESTRICT y = out + at;
      const T* const HWY_RESTRICT from = x + at;
      if constexpr (kGradient) {
        const T* const HWY_RESTRICT g = dy + at;
        for (std::int64_t i = 0; i < inner; ++i) {
          y[i] =
              (from[i] - t.center) * t.factor + (g[i] * t.dy_factor + t.offset);
        }
      } else {
        for (std::int64_t i = 0; i < inner; ++i) {
          y[i] = (from[i] - t.center) * t.factor + t.offset;
        }
      }
      if (++channel == channels) channel = 0;
    }
  }
};

template <typename T, bool kGradient>
void RunRows(const BatchNormArgs& args) {
  const T* const statistics = static_cast<const T*>(args.statistics);
  const T* const sums = static_cast<const T*>(args.sums);
  const T count = static_cast<T>(args.batch * args.inner);
  std::vector<Terms<T>> terms(static_cast<std::size_t>(args.channels));
  for (std::int64_t c = 0; c < args.channels; ++c) {
    const T inverse = Inverse<T>(statistics, args.channels, c, args.eps);
    const T scale = inverse * static_cast<const T*>(args.weight)[c];
    Terms<T>& t = terms[c];
    t = {statistics[c], T{0}, T{0}, T{0}};
    if (!kGradient) {
      t.factor = scale;
      t.offset = static_cast<const T*>(args.bias)[c];
      continue;
    }
    t.dy_factor = scale;
    if (sums == nullptr) continue;
    t.factor = -scale * inverse * (sums[args.channels + c] / count);
    t.offset = -scale * (sums[c] / count);
  }
  ParallelFor(
      args.batch * args.channels,
      kBatchNormGrain / std::max<std::int64_t>(args.inner, 1) + 1,
      BatchNormRows<T, kGradient>{
          args.channels, args.inner, terms.data(), static_cast<T*>(args.out),
          static_cast<const T*>(args.x), static_cast<const T*>(args.dy)});
}

template <class F>
void OverChannels(const BatchNormArgs& args) {
  const std::int64_t count = std::max<std::int64_t>(args.batch * args.inner, 1);
  ParallelFor(args.channels, kBatchNormGrain / count + 1, F{args});
}

template <typename T>
void RunPass(const BatchNormArgs& args) {
  switch (args.pass) {
    case BatchNormPass::kStatistics:
      return OverChannels<BatchNormStatisticsOf<T>>(args);
    case BatchNormPass::kForward:
      return RunRows<T, false>(args);
    case BatchNormPass::kSums:
      return OverChannels<BatchNormSumsOf<T>>(args);
    case BatchNormPass::kInputGradient:
      return RunRows<T, true>(args);
  }
}

void RunBatchNorm(const BatchNormArgs& args) {
  args.dtype == DType::kFloat64 ? RunPass<double>(args) : RunPass<float>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(RunBatchNorm);

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const BatchNormArgs& args) {
  return stream.Enqueue(label, [args] {
    HWY_DYNAMIC_DISPATCH(RunBatchNorm)(args);
  });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
