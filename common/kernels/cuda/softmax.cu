// softmax(x) = e / sum(e) and log softmax(x) = (x - max) - log(sum(e)), where e
// = exp(x - max). As on the CPU, a row that contains NaN or +infinity, or only
// -infinity, needs no special case: a difference is NaN, so the sum and all
// results are. Cross-entropy uses both.

#include <cstdint>

#include "common/kernels/cuda/index/reduce_plan.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/reduce_ops.cuh"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/math.h"
#include "common/kernels/reductions.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// A softmax's sums over a row: its maximum, and the sum of e^(x - maximum).
template <typename T>
struct ExponentialSum {
  T max;
  T total;
};

// Reduces the thread's output of the plan, whose elements are x[0], x[stride],
// …; all of its lanes return the result. Every thread of the block calls it,
// once; threads that are not active have no output.
template <typename T>
__device__ ExponentialSum<T> SumExponentials(const ReducePlan& plan,
                                             bool active, const T* x,
                                             std::int64_t size,
                                             std::int64_t stride) {
  __shared__ T maxima[kReduceThreads];
  __shared__ double sums[kReduceThreads];
  const int thread = threadIdx.x;
  const int lane = plan.LaneOf(thread);
  const int first = thread - lane * plan.LaneStride();  // lane 0 of the output

  T max = Max<T>::Nothing();
  if (active) {
    for (std::int64_t i = lane; i < size; i += plan.Lanes()) {
      Max<T>::Merge(max, x[i * stride]);
    }
  }
  MergeLanes<Max<T>>(plan, max, maxima);
  __syncthreads();
  max = maxima[first];

  double sum = 0;
  if (active) {
    const LaneWalk walk(plan.lane_bits, lane, /*runs=*/false, size);
    for (std::int64_t step = 0; step < walk.full_steps();) {
      T part[kReduceStep] = {};
      const std::int64_t left = walk.full_steps() - step;
      const int chain =
          left < kReduceChain ? static_cast<int>(left) : kReduceChain;
      for (int c = 0; c < chain; ++c, ++step) {
#pragma unroll
        for (int j = 0; j < kReduceStep; ++j) {
          part[j] += math::Exp(x[walk.Element(step, j) * stride] - max);
        }
      }
      Flush<Sum<T>>(sum, part);
    }
    for (int j = 0; j < walk.rest(); ++j) {
      sum += static_cast<double>(
          math::Exp(x[walk.Element(walk.full_steps(), j) * stride] - max));
    }
  }
  MergeLanes<Sum<T>>(plan, sum, sums);
  __syncthreads();
  return {max, static_cast<T>(sums[first])};
}

// ---- Softmax.

// Reads each row three times: it is in the cache after the first. A thread
// writes only elements that it has read itself, so out may be in.
template <typename T, bool kLog>
__global__ void __launch_bounds__(kReduceThreads, kReduceBlocks)
    SoftmaxKernel(T* out, const T* in, ReducePlan plan, std::int64_t outputs,
                  std::int64_t size, std::int64_t inner) {
  const int thread = threadIdx.x;
  const int lane = plan.LaneOf(thread);
  const std::int64_t output =
      static_cast<std::int64_t>(blockIdx.x) * plan.Outputs() +
      plan.OutputOf(thread);
  const bool active = output < outputs;
  const std::int64_t offset = output / inner * size * inner + output % inner;
  const T* const x = in + offset;
  T* const y = out + offset;

  const ExponentialSum<T> sum = SumExponentials(plan, active, x, size, inner);
  if (!active) return;
  const T last = kLog ? math::Log(sum.total) : T{1} / sum.total;
  for (std::int64_t i = lane; i < size; i += plan.Lanes()) {
    const T difference = x[i * inner] - sum.max;
    y[i * inner] = kLog ? difference - last : math::Exp(difference) * last;
  }
}

template <typename T>
void Run(const CudaLaunch& launch, const SoftmaxArgs& args) {
  const std::int64_t outputs = args.outer * args.inner;
  if (outputs == 0 || args.size == 0) return;
  const ReducePlan plan = PlanWhole(outputs, args.size, args.inner > 1);
  const auto kernel =
      args.log ? SoftmaxKernel<T, true> : SoftmaxKernel<T, false>;
  StartKernel(kernel, static_cast<unsigned>(plan.blocks), kReduceThreads,
              launch.stream, static_cast<T*>(args.out),
              static_cast<const T*>(args.in), plan, outputs, args.size,
              args.inner);
}

// ---- Cross-entropy.

// dy is null for the loss itself, one element for each sample; else the kernel
// computes its gradient.
template <typename T>
__global__ void __launch_bounds__(kReduceThreads, kReduceBlocks)
    CrossEntropyKernel(T* out, const T* dy, const T* logits,
                       const std::int64_t* labels, ReducePlan plan,
                       std::int64_t samples, std::int64_t classes,
                       ErrorReporter errors) {
  const int lane = plan.LaneOf(threadIdx.x);
  const std::int64_t sample =
      static_cast<std::int64_t>(blockIdx.x) * plan.Outputs() +
      plan.OutputOf(threadIdx.x);
  const bool active = sample < samples;
  const T* const x = logits + sample * classes;
  const ExponentialSum<T> sum = SumExponentials(plan, active, x, classes, 1);
  if (!active) return;
  const std::int64_t label = labels[sample];
  const bool good = label >= 0 && label < classes;
  if (!good && lane == 0) {
    ReportError(errors, DeviceError::kLabelOutOfRange, sample, label, classes);
  }
  if (dy == nullptr) {
    if (lane != 0) return;
    out[sample] = good ? math::Log(sum.total) - (x[label] - sum.max) : T{0};
    return;
  }
  const T scale = T{1} / sum.total;
  for (std::int64_t j = lane; j < classes; j += plan.Lanes()) {
    const T probability = math::Exp(x[j] - sum.max) * scale;
    out[sample * classes + j] =
        dy[sample] * (j == label ? probability - T{1} : probability);
  }
}

}  // namespace

void Launch(const CudaLaunch& launch, const SoftmaxArgs& args) {
  VisitFloat(args.dtype, [&](auto zero) { Run<decltype(zero)>(launch, args); });
}

void Launch(const CudaLaunch& launch, const CrossEntropyArgs& args) {
  if (args.samples == 0) return;
  const ReducePlan plan =
      PlanWhole(args.samples, args.classes, /*columns=*/false);
  VisitFloat(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    StartKernel(CrossEntropyKernel<T>, static_cast<unsigned>(plan.blocks),
                kReduceThreads, launch.stream, static_cast<T*>(args.out),
                static_cast<const T*>(args.dy),
                static_cast<const T*>(args.logits), args.labels, plan,
                args.samples, args.classes, launch.errors);
  });
}

}  // namespace d2l::kernels::cuda
