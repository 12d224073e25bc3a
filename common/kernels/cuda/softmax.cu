// softmax(x) = e / sum(e) and log softmax(x) = (x - max) - log(sum(e)), where
// e = exp(x - max). As on the CPU, a row that contains NaN or +infinity, or
// only -infinity, needs no care: a difference is NaN, so the sum is, so all
// are.

#include <cstdint>

#include "common/kernels/cuda/reduce.h"
#include "common/kernels/cuda/reduce_ops.cuh"
#include "common/kernels/cuda/reduce_plan.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/math.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// Three times through each row: it is in the cache after the first. A thread
// writes only what it has read itself, so out may be in.
template <typename T, bool kLog>
__global__ void __launch_bounds__(kReduceThreads)
    SoftmaxKernel(T* out, const T* in, ReducePlan plan, std::int64_t outputs,
                  std::int64_t size, std::int64_t inner) {
  __shared__ T maxima[kReduceThreads];
  __shared__ double sums[kReduceThreads];
  const int thread = threadIdx.x;
  const int lane = plan.LaneOf(thread);
  const int first = thread - lane * plan.LaneStride();  // lane 0 of the output
  const std::int64_t output =
      static_cast<std::int64_t>(blockIdx.x) * plan.Outputs() +
      plan.OutputOf(thread);
  const bool active = output < outputs;
  const std::int64_t offset = output / inner * size * inner + output % inner;
  const T* const x = in + offset;
  T* const y = out + offset;

  T max = Max<T>::Nothing();
  if (active) {
    for (std::int64_t i = lane; i < size; i += plan.Lanes()) {
      Max<T>::Merge(max, x[i * inner]);
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
          part[j] += math::Exp(x[walk.Element(step, j) * inner] - max);
        }
      }
      Sum<T>::Flush(sum, part);
    }
    for (int j = 0; j < walk.rest(); ++j) {
      sum += static_cast<double>(
          math::Exp(x[walk.Element(walk.full_steps(), j) * inner] - max));
    }
  }
  MergeLanes<Sum<T>>(plan, sum, sums);
  __syncthreads();
  if (!active) return;
  const T total = static_cast<T>(sums[first]);
  const T last = kLog ? math::Log(total) : T{1} / total;
  for (std::int64_t i = lane; i < size; i += plan.Lanes()) {
    const T difference = x[i * inner] - max;
    y[i * inner] = kLog ? difference - last : math::Exp(difference) * last;
  }
}

template <typename T>
void Run(const Launch& launch, const SoftmaxArgs& args) {
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

}  // namespace

void LaunchSoftmax(const Launch& launch, const SoftmaxArgs& args) {
  if (args.dtype == DType::kFloat64) {
    Run<double>(launch, args);
  } else {
    Run<float>(launch, args);
  }
}

}  // namespace d2l::kernels::cuda
