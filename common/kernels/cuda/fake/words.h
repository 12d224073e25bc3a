// CUDA's words for kernels, on the CPU: with this header the C++ compiler
// compiles the functions of a .cu file.
//
//   __global__ void Double(float* x, int n) {
//     const int i = blockIdx.x * blockDim.x + threadIdx.x;
//     if (i < n) x[i] *= 2;
//   }
//
// start_kernel.cuh launches kernels, and grid.h runs their threads. For nvcc,
// which has its own words, this header is empty.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_WORDS_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_WORDS_H_

#ifndef __CUDACC__

#include <algorithm>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
// One block runs on a thread at a time.
#define __shared__ static thread_local
#define __launch_bounds__(...)

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
using std::min;  // NOLINT(google-global-names-in-headers): as CUDA has it

namespace d2l::kernels::cuda::internal {

// Waits for the lanes of `mask`, hands `value` to them, and returns the value
// of lane `from`.
std::uint64_t Exchange(unsigned mask, std::uint64_t value, int from);
// The lanes of `mask` for which `predicate` holds.
unsigned Ballot(unsigned mask, bool predicate);
int LaneOfThread();
// Adds atomically; returns the previous value.
int AtomicAdd(int* to, int value);
unsigned AtomicAdd(unsigned* to, unsigned value);
float AtomicAdd(float* to, float value);

template <typename T>
T Shuffle(unsigned mask, T value, int from) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = Exchange(mask, bits, from);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace d2l::kernels::cuda::internal

constexpr int warpSize = 32;

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane) {
  return d2l::kernels::cuda::internal::Shuffle(mask, value, lane % warpSize);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta) {
  const int lane = d2l::kernels::cuda::internal::LaneOfThread();
  const int from = lane + static_cast<int>(delta);
  return d2l::kernels::cuda::internal::Shuffle(mask, value,
                                               from < warpSize ? from : lane);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  const int lane = d2l::kernels::cuda::internal::LaneOfThread();
  return d2l::kernels::cuda::internal::Shuffle(mask, value, lane ^ lanes);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return d2l::kernels::cuda::internal::Ballot(mask, predicate != 0);
}
template <typename T>
T atomicAdd(T* to, T value) {
  return d2l::kernels::cuda::internal::AtomicAdd(to, value);
}

#endif  // __CUDACC__

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_WORDS_H_
