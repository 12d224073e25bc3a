#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/nn/enqueue.h"
#include "common/kernels/cpu/vector_targets.h"
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

// How much work, in elements, is worth a thread.
constexpr std::int64_t kBatchNormGrain = 16384;

// ---- Sums over a channel, block by block, in an order that does not depend on
// the threads: they share the channels.

// Element i of a channel is in image i / inner. Copies [begin, begin + n) of
// one, unless they lie side by side.
template <typename T>
HWY_INLINE const T* ChannelBlock(const T* x, std::int64_t channels,
                                 std::int64_t inner, std::int64_t channel,
                                 std::int64_t begin, std::int64_t n,
                                 T* buffer) {
  std::int64_t image = begin / inner;
  std::int64_t at = begin % inner;
  if (at + n <= inner) return x + (image * channels + channel) * inner + at;
  for (std::int64_t i = 0; i < n; ++image, at = 0) {
    const T* const from = x + (image * channels + channel) * inner + at;
    const std::int64_t count = std::min(inner - at, n - i);
    if (count >= 64) {
      std::memcpy(buffer + i, from,
                  static_cast<std::size_t>(count) * sizeof(T));
    } else {
      for (std::int64_t j = 0; j < count; ++j) buffer[i + j] = from[j];
    }
    i += count;
  }
  return buffer;
}

// The length of the block that begins there: of large images, no block has
// parts of two.
template <typename T>
HWY_INLINE std::int64_t BlockLength(std::int64_t begin, std::int64_t count,
                                    std::int64_t inner) {
  const std::int64_t end =
      inner >= kBlock<T> / 8 ? begin + inner - begin % inner : count;
  return std::min(kBlock<T>, end - begin);
}

template <typename T>
struct BatchNormStatisticsOf {
  BatchNormStatisticsArgs args;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t count = args.batch * args.inner;
    T* const out = static_cast<T*>(args.out);
    T buffer[kBlock<T>];
    T squares[kBlock<T>];
    for (std::int64_t c = begin; c < end; ++c) {
      // Of a block, deviations from its own mean; then Chan's formula.
      double mean = 0, deviations = 0;
      for (std::int64_t i = 0, n = 0; i < count; i += n) {
        n = BlockLength<T>(i, count, args.inner);
        const T* const x =
            ChannelBlock(static_cast<const T*>(args.x), args.channels,
                         args.inner, c, i, n, buffer);
        const double block_mean = BlockSum(x, n) / static_cast<double>(n);
        const T center = static_cast<T>(block_mean);
        for (std::int64_t j = 0; j < n; ++j) {
          squares[j] = (x[j] - center) * (x[j] - center);
        }
        const double step = block_mean - mean;
        const double share =
            static_cast<double>(n) / static_cast<double>(i + n);
        mean += step * share;
        deviations +=
            BlockSum(squares, n) + step * step * static_cast<double>(i) * share;
      }
      out[c] = static_cast<T>(mean);
      out[args.channels + c] =
          static_cast<T>(deviations / static_cast<double>(count));
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
  BatchNormSumsArgs args;

  HWY_FLATTEN void operator()(std::int64_t begin, std::int64_t end) const {
    const std::int64_t count = args.batch * args.inner;
    T* const out = static_cast<T*>(args.out);
    T x_buffer[kBlock<T>];
    T dy_buffer[kBlock<T>];
    T products[kBlock<T>];
    for (std::int64_t c = begin; c < end; ++c) {
      const T mean = static_cast<const T*>(args.statistics)[c];
      double sum = 0, sum_of_products = 0;
      for (std::int64_t i = 0, n = 0; i < count; i += n) {
        n = BlockLength<T>(i, count, args.inner);
        const T* const x =
            ChannelBlock(static_cast<const T*>(args.x), args.channels,
                         args.inner, c, i, n, x_buffer);
        const T* const dy =
            ChannelBlock(static_cast<const T*>(args.dy), args.channels,
                         args.inner, c, i, n, dy_buffer);
        for (std::int64_t j = 0; j < n; ++j) {
          products[j] = dy[j] * (x[j] - mean);
        }
        sum += BlockSum(dy, n);
        sum_of_products += BlockSum(products, n);
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

template <typename T>
void BatchNormAs(const BatchNormArgs& args) {
  std::vector<Terms<T>> terms(static_cast<std::size_t>(args.channels));
  for (std::int64_t c = 0; c < args.channels; ++c) {
    terms[c] = {static_cast<const T*>(args.statistics)[c],
                Inverse<T>(args.statistics, args.channels, c, args.eps) *
                    static_cast<const T*>(args.weight)[c],
                T{0}, static_cast<const T*>(args.bias)[c]};
  }
  ParallelFor(args.batch * args.channels,
              kBatchNormGrain / std::max<std::int64_t>(args.inner, 1) + 1,
              BatchNormRows<T, false>{args.channels, args.inner, terms.data(),
                                      static_cast<T*>(args.out),
                                      static_cast<const T*>(args.x), nullptr});
}

template <typename T>
void BatchNormInputGradientAs(const BatchNormInputGradientArgs& args) {
  const T* const sums = static_cast<const T*>(args.sums);
  const T count = static_cast<T>(args.batch * args.inner);
  std::vector<Terms<T>> terms(static_cast<std::size_t>(args.channels));
  for (std::int64_t c = 0; c < args.channels; ++c) {
    const T inverse = Inverse<T>(args.statistics, args.channels, c, args.eps);
    const T scale = inverse * static_cast<const T*>(args.weight)[c];
    terms[c] = {static_cast<const T*>(args.statistics)[c], T{0}, scale, T{0}};
    if (sums == nullptr) continue;
    terms[c].factor = -scale * inverse * (sums[args.channels + c] / count);
    terms[c].offset = -scale * (sums[c] / count);
  }
  ParallelFor(args.batch * args.channels,
              kBatchNormGrain / std::max<std::int64_t>(args.inner, 1) + 1,
              BatchNormRows<T, true>{args.channels, args.inner, terms.data(),
                                     static_cast<T*>(args.out),
                                     static_cast<const T*>(args.x),
                                     static_cast<const T*>(args.dy)});
}

template <typename F>
void OverChannels(std::int64_t channels, std::int64_t count, const F& f) {
  ParallelFor(channels, kBatchNormGrain / std::max<std::int64_t>(count, 1) + 1,
              f);
}

void RunBatchNormStatistics(const BatchNormStatisticsArgs& args) {
  const std::int64_t count = args.batch * args.inner;
  if (args.dtype == DType::kFloat64) {
    OverChannels(args.channels, count, BatchNormStatisticsOf<double>{args});
  } else {
    OverChannels(args.channels, count, BatchNormStatisticsOf<float>{args});
  }
}
void RunBatchNorm(const BatchNormArgs& args) {
  args.dtype == DType::kFloat64 ? BatchNormAs<double>(args)
                                : BatchNormAs<float>(args);
}
void RunBatchNormSums(const BatchNormSumsArgs& args) {
  const std::int64_t count = args.batch * args.inner;
  if (args.dtype == DType::kFloat64) {
    OverChannels(args.channels, count, BatchNormSumsOf<double>{args});
  } else {
    OverChannels(args.channels, count, BatchNormSumsOf<float>{args});
  }
}
void RunBatchNormInputGradient(const BatchNormInputGradientArgs& args) {
  args.dtype == DType::kFloat64 ? BatchNormInputGradientAs<double>(args)
                                : BatchNormInputGradientAs<float>(args);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(RunBatchNormStatistics);
HWY_EXPORT(RunBatchNorm);
HWY_EXPORT(RunBatchNormSums);
HWY_EXPORT(RunBatchNormInputGradient);

std::uint64_t EnqueueBatchNormStatistics(CpuStream& stream,
                                         const OpLabel& label,
                                         const BatchNormStatisticsArgs& args) {
  return stream.Enqueue(label, [args] {
    HWY_DYNAMIC_DISPATCH(RunBatchNormStatistics)(args);
  });
}

std::uint64_t EnqueueBatchNorm(CpuStream& stream, const OpLabel& label,
                               const BatchNormArgs& args) {
  return stream.Enqueue(label, [args] {
    HWY_DYNAMIC_DISPATCH(RunBatchNorm)(args);
  });
}

std::uint64_t EnqueueBatchNormSums(CpuStream& stream, const OpLabel& label,
                                   const BatchNormSumsArgs& args) {
  return stream.Enqueue(label, [args] {
    HWY_DYNAMIC_DISPATCH(RunBatchNormSums)(args);
  });
}

std::uint64_t EnqueueBatchNormInputGradient(
    CpuStream& stream, const OpLabel& label,
    const BatchNormInputGradientArgs& args) {
  return stream.Enqueue(label, [args] {
    HWY_DYNAMIC_DISPATCH(RunBatchNormInputGradient)(args);
  });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
