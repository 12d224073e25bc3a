// A kernel that computes each element of its output by itself:
//
//   LaunchForEach(launch, out, numel, Mean<float>{in, window});
//
// calls f(e) for e from 0 to numel - 1, where f is a value of less than 4 KB
// with a __device__ operator(), and sets out[e] to what it returns. out is
// nothing that f reads. For .cu files.

#ifndef D2L_COMMON_KERNELS_CUDA_NN_FOR_EACH_CUH_
#define D2L_COMMON_KERNELS_CUDA_NN_FOR_EACH_CUH_

#include <cstdint>

#include "common/device/cuda/launch_geometry.h"
#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {

template <typename T, class F>
__global__ void __launch_bounds__(kThreads)
    ForEachKernel(T* __restrict__ out, std::int64_t numel, F f) {
  for (std::int64_t e = ThreadInGrid(); e < numel; e += ThreadsOfGrid()) {
    out[e] = f(e);
  }
}

template <typename T, class F>
void LaunchForEach(const CudaLaunch& launch, void* out, std::int64_t numel,
                   F f) {
  if (numel == 0) return;
  const LaunchGeometry geometry = GeometryFor(numel, launch.multiprocessors);
  StartKernel(ForEachKernel<T, F>, geometry.blocks, geometry.threads,
              launch.stream, static_cast<T*>(out), numel, f);
}

// Calls f(T{}), T float or double.
template <class F>
void VisitFloat(DType dtype, F f) {
  if (dtype == DType::kFloat64) {
    f(double{});
  } else {
    f(float{});
  }
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_NN_FOR_EACH_CUH_
