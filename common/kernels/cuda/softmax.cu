// softmax(x) = e / sum(e) and log softmax(x) = (x - max) - log(sum(e)), where
// e = exp(x - max). As on the CPU, a row that contains NaN or +infinity, or
// only -infinity, needs no care: a difference is NaN, so the sum is, so all
// are.

#include <cstdint>

#include "common/kernels/cuda/index/reduce_plan.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/softmax_sum.cuh"
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

}  // namespace

void Launch(const CudaLaunch& launch, const SoftmaxArgs& args) {
  VisitFloat(args.dtype, [&](auto zero) { Run<decltype(zero)>(launch, args); });
}

}  // namespace d2l::kernels::cuda
