#include <cstdint>

#include "common/kernels/cuda/index/reduce_plan.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/softmax_sum.cuh"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/math.h"

namespace d2l::kernels::cuda {
namespace {

// dy: null for the loss itself, one element for each sample, else for its
// gradient.
template <typename T>
__global__ void __launch_bounds__(kReduceThreads)
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

void Start(const CudaLaunch& launch, DType dtype, void* out, const void* dy,
           const void* logits, const std::int64_t* labels, std::int64_t samples,
           std::int64_t classes) {
  if (samples == 0) return;
  const ReducePlan plan = PlanWhole(samples, classes, /*columns=*/false);
  VisitFloat(dtype, [&](auto zero) {
    using T = decltype(zero);
    StartKernel(CrossEntropyKernel<T>, static_cast<unsigned>(plan.blocks),
                kReduceThreads, launch.stream, static_cast<T*>(out),
                static_cast<const T*>(dy), static_cast<const T*>(logits),
                labels, plan, samples, classes, launch.errors);
  });
}

}  // namespace

void Launch(const CudaLaunch& launch, const CrossEntropyArgs& args) {
  Start(launch, args.dtype, args.out, nullptr, args.logits, args.labels,
        args.samples, args.classes);
}

void Launch(const CudaLaunch& launch, const CrossEntropyGradientArgs& args) {
  Start(launch, args.dtype, args.out, args.dy, args.logits, args.labels,
        args.samples, args.classes);
}

}  // namespace d2l::kernels::cuda
