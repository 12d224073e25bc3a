// CUDA's words for kernels, on the CPU: with this header the C++ compiler takes
// the .cu files, and their kernels run as work of a FakeCuda's streams.
//
// For tests on machines without a GPU. Every thread of a block runs, up to each
// __syncthreads(), one after the other; blocks run one after the other, too. So
// it shows what a kernel computes, which memory it touches, and how it is
// launched. It shows no race between threads, no warp, and no speed; the
// arithmetic is the CPU's.
//
// Included by start_kernel.cuh instead of CUDA's headers.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_EMULATION_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_EMULATION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/stream/error_record.h"

#define __global__
#define __device__
// One block runs on a thread at a time.
#define __shared__ static thread_local
#define __launch_bounds__(threads)

struct dim3 {
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)  // NOLINT: as CUDA's
      : x(x), y(y), z(z) {}
  unsigned x, y, z;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

extern thread_local dim3 threadIdx;
extern thread_local dim3 blockIdx;
extern thread_local dim3 blockDim;
extern thread_local dim3 gridDim;

void __syncthreads();
using std::min;

enum cudaMemcpyKind { cudaMemcpyDefault = 4 };
int cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes,
                    cudaMemcpyKind kind, d2l::CudaStreamHandle stream);

namespace d2l::kernels::cuda {

namespace internal {

// What a kernel is given an address of, a GPU can reach.
void RequireReachable(const void* data);
template <typename T>
void CheckArgument(const T& argument) {
  if constexpr (std::is_pointer_v<T>) RequireReachable(argument);
}

// Enqueues a grid, each thread of which calls `thread`.
void EnqueueGrid(dim3 blocks, dim3 threads, CudaStreamHandle stream,
                 std::function<void()> thread);

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
  internal::EnqueueGrid(blocks, threads, stream, [=] { kernel(args...); });
}

void ReportError(const ErrorReporter& errors, DeviceError error,
                 std::int64_t position, std::int64_t a = 0, std::int64_t b = 0);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_EMULATION_H_
