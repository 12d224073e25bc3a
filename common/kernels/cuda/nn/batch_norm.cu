// Batch normalisation: sums over each channel, in a fixed order, and the
// results for each element, which use these sums.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/index/divider.h"
#include "common/kernels/cuda/index/reduce_plan.h"
#include "common/kernels/cuda/index/row_places.h"
#include "common/kernels/cuda/index/vector_split.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/reduce_ops.cuh"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/math.h"
#include "common/kernels/running_values.h"

namespace d2l::kernels::cuda {
namespace {

// ---- Sums.

// The sum of a, and of a * b, over elements or over states.
template <typename T>
struct Pair {
  T a, b;
  template <typename U>
  __device__ explicit operator Pair<U>() const {
    return {static_cast<U>(a), static_cast<U>(b)};
  }
};

// An operation as in reductions.h.
template <typename Element>
struct ProductSum {
  using T = Pair<Element>;
  using Part = Pair<Element>;
  using State = Pair<double>;

  __device__ static Part NoElement() { return {0, 0}; }
  __device__ static State Nothing() { return {0, 0}; }
  __device__ static void Add(Part& part, const T& x, std::int64_t) {
    part.a += x.a;
    part.b += x.a * x.b;
  }
  template <typename S>
  __device__ static void Merge(S& state, const S& later) {
    state.a += later.a;
    state.b += later.b;
  }
};

// x is (batch, channels, inner), and n = batch * inner. In the plan a channel
// is an output.
struct Channels {
  ReducePlan plan;
  std::int64_t channels, inner, n;
  bool runs;         // the channel's part of an image is whole steps
  RowPlaces places;  // of a lane's elements, or steps; from the channel's first

  __device__ std::int64_t First(std::int64_t channel) const {
    return channel * inner;
  }
};

Channels ChannelsOf(const BatchNormArgs& args) {
  const std::int64_t n = args.batch * args.inner;
  // A plan needs at least one output.
  const std::int64_t outputs = std::max<std::int64_t>(args.channels, 1);
  const ReducePlan plan = PlanReduce(outputs, n, /*columns=*/args.inner == 1);
  const bool runs = args.inner % kReduceStep == 0;
  return {plan,
          args.channels,
          args.inner,
          n,
          runs,
          RowPlaces(args.inner, n, args.channels * args.inner, /*stride=*/1,
                    plan.Lanes() * (runs ? kReduceStep : 1))};
}

// Computes mean and variance from differences to one of the elements: these are
// about as large as the deviation, so one pass loses no digits.
template <typename Element>
struct Statistics {
  using T = Element;
  static constexpr bool reads_dy = false;
  struct Term {
    T origin;
    __device__ Pair<T> operator()(T, T x) const {
      return {x - origin, x - origin};
    }
  };

  const T* dy;  // null
  const T* x;
  RunningValues<T> running;

  __device__ T Origin(const Channels& in, std::int64_t channel) const {
    return x[in.First(channel)];
  }
  __device__ Term Of(const Channels& in, std::int64_t channel) const {
    return {Origin(in, channel)};
  }
  __device__ void Store(const Channels& in, std::int64_t channel,
                        const Pair<double>& state, T* out) const {
    const double n = static_cast<double>(in.n);
    const double mean = state.a / n;
    const double variance = state.b / n - mean * mean;
    const T rounded_mean =
        static_cast<T>(static_cast<double>(Origin(in, channel)) + mean);
    const T rounded_variance =
        static_cast<T>(variance < 0 ? 0 : variance);  // NaN stays
    out[channel] = rounded_mean;
    out[in.channels + channel] = rounded_variance;
    running.Update(channel, rounded_mean, rounded_variance);
  }
};

// Computes xhat from x.
template <typename T>
struct Normalize {
  T mean, scale;
  __device__ Normalize(const T* statistics, std::int64_t channels,
                       std::int64_t channel, T eps)
      : mean(statistics[channel]),
        scale(T{1} / math::Sqrt(statistics[channels + channel] + eps)) {}
  __device__ T operator()(T x) const { return (x - mean) * scale; }
};

template <typename Element>
struct GradientSums {
  using T = Element;
  static constexpr bool reads_dy = true;
  struct Term {
    Normalize<T> normalize;
    __device__ Pair<T> operator()(T dy, T x) const {
      return {dy, normalize(x)};
    }
  };

  const T* dy;
  const T* x;
  const T* statistics;
  T eps;

  __device__ Term Of(const Channels& in, std::int64_t channel) const {
    return {Normalize<T>(statistics, in.channels, channel, eps)};
  }
  __device__ void Store(const Channels& in, std::int64_t channel,
                        const Pair<double>& state, T* out) const {
    out[channel] = static_cast<T>(state.a);
    out[in.channels + channel] = static_cast<T>(state.b);
  }
};

// One of the sums above, for each channel. kRuns: by whole steps.
template <class Sums, bool kRuns>
struct ChannelSums {
  using T = typename Sums::T;
  using Op = ProductSum<T>;
  static constexpr bool runs = kRuns;

  T* out;
  Sums sums;
  Channels in;

  __device__ typename Op::State OfLane(std::int64_t channel,
                                       const LaneWalk& walk,
                                       std::int64_t begin) const {
    const std::int64_t first = in.First(channel);
    const T* const x = sums.x + first;
    const T* const dy = Sums::reads_dy ? sums.dy + first : nullptr;
    const auto term = sums.Of(in, channel);
    RowPlaces::Walk place = in.places.From(begin + walk.Element(0, 0));
    if constexpr (kRuns) {
      return ReduceLane<Op, 2>(
          walk, begin, WholeSteps{[&](Pair<T>(&terms)[kReduceStep]) {
            const std::int64_t at = place.Next();
            T from_dy[kReduceStep] = {}, from_x[kReduceStep];
            if constexpr (Sums::reads_dy) LoadStep(dy + at, from_dy);
            LoadStep(x + at, from_x);
#pragma unroll
            for (int j = 0; j < kReduceStep; ++j)
              terms[j] = term(from_dy[j], from_x[j]);
          }});
    } else {
      return ReduceLane<Op, 2>(walk, begin, OneByOne{[&](std::int64_t) {
                                 const std::int64_t at = place.Next();
                                 return term(Sums::reads_dy ? dy[at] : T{},
                                             x[at]);
                               }});
    }
  }
  __device__ void Store(std::int64_t channel,
                        const typename Op::State& state) const {
    sums.Store(in, channel, state, out);
  }
};

template <class Sums>
void LaunchSums(const CudaLaunch& launch, const BatchNormArgs& args,
                void* workspace, const Sums& sums) {
  const Channels in = ChannelsOf(args);
  auto* const out = static_cast<typename Sums::T*>(args.out);
  if (in.runs) {
    StartReduce(launch, in.plan, in.channels, in.n, workspace,
                ChannelSums<Sums, true>{out, sums, in});
  } else {
    StartReduce(launch, in.plan, in.channels, in.n, workspace,
                ChannelSums<Sums, false>{out, sums, in});
  }
}

// ---- Elements.

// A row is the part of a channel in one image, `inner` vectors of kSize
// elements. `lanes` threads, a power of two, share a row, so that each prepares
// its channel once. dy may be null.
template <int kSize, class Elements,
          class V = Vector<typename Elements::T, kSize>>
__global__ void __launch_bounds__(kThreads, kLeastBlocks)
    RowsKernel(V* __restrict__ out, const V* __restrict__ dy,
               const V* __restrict__ x, Elements elements, std::int64_t rows,
               std::int64_t channels, std::int64_t inner, Splitter by_channels,
               int lane_bits) {
  const std::int64_t lanes = std::int64_t{1} << lane_bits;
  const std::int64_t lane = ThreadInGrid() & (lanes - 1);
  for (std::int64_t row = ThreadInGrid() >> lane_bits; row < rows;
       row += ThreadsOfGrid() >> lane_bits) {
    std::int64_t channel;
    by_channels.Split(row, &channel);
    const auto element = elements.Of(channels, channel);
    const std::int64_t end = (row + 1) * inner;
#pragma unroll 4
    for (std::int64_t v = row * inner + lane; v < end; v += lanes) {
      const V from_dy = dy == nullptr ? V{} : dy[v];
      const V from_x = x[v];
      V result;
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        result.at[j] = element(from_dy.at[j], from_x.at[j]);
      }
      out[v] = result;
    }
  }
}

template <class Elements>
void LaunchRows(const CudaLaunch& launch, const BatchNormArgs& args,
                Elements elements) {
  using T = typename Elements::T;
  const std::int64_t rows = args.batch * args.channels;
  if (rows * args.inner == 0) return;
  const auto start = [&](auto size) {
    using V = Vector<T, size>;
    const std::int64_t inner = args.inner / size;
    // At most a warp for a row of up to 128 vectors; then four for each thread.
    const int lane_bits =
        std::max(internal::Bits(inner, 5),
                 internal::Bits(internal::CeilDiv(inner, 4), 8));
    StartGrid(launch, rows << lane_bits, 1, RowsKernel<size, Elements>,
              static_cast<V*>(args.out), static_cast<const V*>(args.dy),
              static_cast<const V*>(args.x), elements, rows, args.channels,
              inner, Splitter(args.channels, rows), lane_bits);
  };
  // Whether each row is whole vectors, in every array.
  constexpr int kSize = kVectorSize<T>;
  Alignment alignment(kSize);
  alignment.Add(args.out, sizeof(T));
  alignment.Add(args.dy, sizeof(T));
  alignment.Add(args.x, sizeof(T));
  if (args.inner % kSize == 0 && alignment.head() == 0) {
    start(std::integral_constant<int, kSize>());
  } else {
    start(std::integral_constant<int, 1>());
  }
}

template <typename Element>
struct Normalized {
  using T = Element;
  struct Map {
    Normalize<T> normalize;
    T weight, bias;
    __device__ T operator()(T, T x) const {
      return normalize(x) * weight + bias;
    }
  };

  const T* statistics;
  const T* weight;
  const T* bias;
  T eps;

  __device__ Map Of(std::int64_t channels, std::int64_t channel) const {
    return {Normalize<T>(statistics, channels, channel, eps), weight[channel],
            bias[channel]};
  }
};

template <typename Element>
struct InputGradient {
  using T = Element;
  struct Map {
    Normalize<T> normalize;
    T weight, mean_dy, mean_product;
    __device__ T operator()(T dy, T x) const {
      return weight * (dy - mean_dy - normalize(x) * mean_product);
    }
  };

  const T* statistics;
  const T* weight;
  const T* sums;  // or null
  T eps, count;

  __device__ Map Of(std::int64_t channels, std::int64_t channel) const {
    const Normalize<T> normalize(statistics, channels, channel, eps);
    const T factor = weight[channel] * normalize.scale;
    if (sums == nullptr) return {normalize, factor, 0, 0};
    return {normalize, factor, sums[channel] / count,
            sums[channels + channel] / count};
  }
};

template <typename T>
void Run(const CudaLaunch& launch, const BatchNormArgs& args, void* workspace) {
  const T* const x = static_cast<const T*>(args.x);
  const T* const statistics = static_cast<const T*>(args.statistics);
  const T* const weight = static_cast<const T*>(args.weight);
  const T eps = static_cast<T>(args.eps);
  switch (args.pass) {
    case BatchNormPass::kStatistics:
      return LaunchSums(launch, args, workspace,
                        Statistics<T>{nullptr, x, RunningValues<T>(args)});
    case BatchNormPass::kForward:
      return LaunchRows(launch, args,
                        Normalized<T>{statistics, weight,
                                      static_cast<const T*>(args.bias), eps});
    case BatchNormPass::kSums:
      return LaunchSums(
          launch, args, workspace,
          GradientSums<T>{static_cast<const T*>(args.dy), x, statistics, eps});
    case BatchNormPass::kInputGradient:
      return LaunchRows(
          launch, args,
          InputGradient<T>{statistics, weight, static_cast<const T*>(args.sums),
                           eps, static_cast<T>(args.batch * args.inner)});
  }
}

}  // namespace

std::size_t WorkspaceBytes(const BatchNormArgs& args) {
  if (args.pass == BatchNormPass::kForward ||
      args.pass == BatchNormPass::kInputGradient) {
    return 0;
  }
  return StateBytes(ChannelsOf(args).plan, args.channels, sizeof(Pair<double>));
}

void Launch(const CudaLaunch& launch, const BatchNormArgs& args,
            void* workspace) {
  VisitFloat(args.dtype,
             [&](auto zero) { Run<decltype(zero)>(launch, args, workspace); });
}

}  // namespace d2l::kernels::cuda
