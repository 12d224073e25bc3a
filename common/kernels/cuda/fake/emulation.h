// Kernels of .cu files as work of a FakeCuda's streams.
//
// For tests on machines without a GPU: the C++ compiler takes the .cu files
// with CUDA's words from words.h, and grid.h runs them. Tests see what a kernel
// computes, which memory it touches, and how it is launched. They see no speed,
// and the arithmetic is the CPU's; with --config=check_cuda they see races, too
// (check.h).
//
// start_kernel.cuh includes this header instead of CUDA's.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_EMULATION_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_EMULATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/stream/error_record.h"
#include "common/kernels/cuda/fake/words.h"

enum cudaMemcpyKind { cudaMemcpyDefault = 4 };
int cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes,
                    cudaMemcpyKind kind, d2l::CudaStreamHandle stream);

namespace d2l::kernels::cuda {

namespace internal {

// Aborts if a kernel's argument is an address that a GPU cannot reach.
void RequireReachable(const void* data);
template <typename T>
void CheckArgument(const T& argument) {
  if constexpr (std::is_pointer_v<T>) RequireReachable(argument);
}

// Enqueues a grid of a kernel, each thread of which calls `thread`.
void EnqueueGrid(const void* kernel, dim3 blocks, dim3 threads,
                 CudaStreamHandle stream, std::function<void()> thread);

}  // namespace internal

template <typename T>
struct Converted {
  using type = T;
};

template <typename... T>
void StartKernel(void (*kernel)(T...), dim3 blocks, dim3 threads,
                 CudaStreamHandle stream,
                 const typename Converted<T>::type&... args) {
  static_assert((std::size_t{0} + ... + sizeof(T)) <= 4096,
                "a kernel's parameters are at most 4 KB");
  (internal::CheckArgument(args), ...);
  internal::EnqueueGrid(reinterpret_cast<const void*>(kernel), blocks, threads,
                        stream, [=] { kernel(args...); });
}

void ReportError(const ErrorReporter& errors, DeviceError error,
                 std::int64_t position, std::int64_t a = 0, std::int64_t b = 0);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_EMULATION_H_
