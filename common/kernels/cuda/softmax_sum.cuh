// What a softmax needs to know of a row: its maximum, and the sum of e^(x -
// maximum). For .cu files.

#ifndef D2L_COMMON_KERNELS_CUDA_SOFTMAX_SUM_CUH_
#define D2L_COMMON_KERNELS_CUDA_SOFTMAX_SUM_CUH_

#include <cstdint>

#include "common/kernels/cuda/index/reduce_plan.h"
#include "common/kernels/cuda/reduce_ops.cuh"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/math.h"
#include "common/kernels/reductions.h"

namespace d2l::kernels::cuda {

template <typename T>
struct ExponentialSum {
  T max;
  T total;
};

// Of the thread's output of the plan, whose elements are x[0], x[stride], …,
// the same in all of its lanes. Every thread of the block calls it, once; those
// that are not active have no output.
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

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_SOFTMAX_SUM_CUH_
