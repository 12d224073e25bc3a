// How a kernel is launched, and how it reports errors.
//
//   StartKernel(AddKernel<float>, blocks, threads, launch.stream, out, a, b);
//
// For .cu files. They are compiled by nvcc, and, for tests on machines without
// a GPU, by the C++ compiler with emulation.h, which defines CUDA's keywords.

#ifndef D2L_COMMON_KERNELS_CUDA_START_KERNEL_CUH_
#define D2L_COMMON_KERNELS_CUDA_START_KERNEL_CUH_

#ifdef __CUDACC__

#include <cuda_runtime_api.h>

#include <cstdint>

#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/stream/error_record.h"

namespace d2l::kernels::cuda {

// Arguments are converted to the types of the kernel's parameters.
template <typename T>
struct Converted {
  using type = T;
};

template <typename... T>
void StartKernel(void (*kernel)(T...), dim3 blocks, dim3 threads,
                 CudaStreamHandle stream,
                 const typename Converted<T>::type&... args) {
  ++d2l::internal::kernels_launched;
  const std::uint64_t grid =
      std::uint64_t{blocks.x} * blocks.y * threads.x * threads.y;
  if (grid > d2l::internal::kLongGrid) {
    d2l::internal::long_kernel_launched = true;
  }
  kernel<<<blocks, threads, 0, stream>>>(args...);
}

// See ErrorReporter.
__device__ inline void ReportError(const ErrorReporter& errors,
                                   DeviceError error, std::int64_t position,
                                   std::int64_t a = 0, std::int64_t b = 0) {
  errors.Report(error, position, a, b);
}

}  // namespace d2l::kernels::cuda

#else

#include "common/kernels/cuda/fake/emulation.h"

#endif

#endif  // D2L_COMMON_KERNELS_CUDA_START_KERNEL_CUH_
