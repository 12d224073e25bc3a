// CUDA's words for kernels, on the CPU: with this header the C++ compiler
// compiles the functions of a .cu file.
//
//   __global__ void Double(float* x, int n) {
//     const int i = blockIdx.x * blockDim.x + threadIdx.x;
//     if (i < n) x[i] *= 2;
//   }
//
// start_kernel.cuh launches kernels, and grid.h runs their threads. For nvcc,
// which has its own words, this header is empty. Words that need more than a
// line are in vectors.h, math.h, warp.h and atomics.h.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_WORDS_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_WORDS_H_

#ifndef __CUDACC__

// libstdc++ uses the name __noinline__, so this comes before the macro.
#include <memory>

#include "common/kernels/cuda/fake/atomics.h"
#include "common/kernels/cuda/fake/math.h"
#include "common/kernels/cuda/fake/vectors.h"
#include "common/kernels/cuda/fake/warp.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
// One block runs on a thread at a time.
#define __shared__ thread_local
#define __launch_bounds__(...)
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
// Not an attribute: libstdc++ 14 has __attribute__((__noinline__)).
#define __noinline__
#define __align__(bytes) __attribute__((aligned(bytes)))

extern thread_local dim3 threadIdx;
extern thread_local dim3 blockIdx;
extern thread_local dim3 blockDim;
extern thread_local dim3 gridDim;

constexpr int warpSize = 32;

// Caches are not modelled. These are macros, so that the check of kernels finds
// the access in the line that has the word.
#define __ldg(from) (*(from))
#define __ldca(from) (*(from))
#define __ldcg(from) (*(from))
#define __ldcs(from) (*(from))
#define __stcg(to, value) (*(to) = (value))
#define __stcs(to, value) (*(to) = (value))
#define __stwb(to, value) (*(to) = (value))

void __syncthreads();
// They wait as __syncthreads() does, and return for how many threads of the
// block the predicate holds, whether it holds for all, and for any.
int __syncthreads_count(int predicate);
int __syncthreads_and(int predicate);
int __syncthreads_or(int predicate);

// What the thread did before is done, for the threads that see what it does
// next to an atomic.
void __threadfence();
void __threadfence_block();
void __threadfence_system();

// Nanoseconds of the CPU: no figure of a GPU. clock() is C's.
long long clock64();  // NOLINT(google-runtime-int): as CUDA's
inline void __nanosleep(unsigned) {}
[[noreturn]] void __trap();

#endif  // __CUDACC__

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_WORDS_H_
