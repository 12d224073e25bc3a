// For exercises that are kernels. The C++ compiler compiles such a file for the
// check of kernels, which runs on every machine
// (common/kernels/cuda/fake/check.h); in builds with --config=cuda nvcc also
// compiles it for a GPU.
//
//   __global__ void Double(float* x) {
//     // YOUR CODE
//     KernelIsNotDone();
//   }
//   D2L_ANSWER("double", Double);
//
// A launch gives kDynamicShared bytes to `extern __shared__` arrays.

#ifndef D2L_COMMON_EXERCISE_KERNEL_H_
#define D2L_COMMON_EXERCISE_KERNEL_H_

#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "common/exercise/answer.h"
#include "common/exercise/gpu_run.h"
#include "common/kernels/cuda/fake/words.h"

namespace d2l {

// Marks a kernel that has not been written yet. A kernel cannot throw.
#ifndef __CUDACC__
void KernelIsNotDone();
// Prints once, though the check of kernels runs a grid three times.
int printf(const char* format, ...) __attribute__((format(printf, 1, 2)));
#else
__device__ inline void KernelIsNotDone() {}

// nvcc's object only provides the kernel; the other object has the answer.
#undef D2L_ANSWER
#define D2L_ANSWER(exercise, function)                                       \
  [[maybe_unused]] const bool kernel_is_registered =                         \
      ::d2l::GpuKernels()                                                    \
          .emplace(__FILE__,                                                 \
                   ::d2l::GpuKernel{reinterpret_cast<const void*>(function), \
                                    ::d2l::RunOnGpu})                        \
          .second
#endif

}  // namespace d2l

#endif  // D2L_COMMON_EXERCISE_KERNEL_H_
