// For exercises that are kernels. The C++ compiler compiles such a file for the
// check of kernels, which every machine can run
// (common/kernels/cuda/fake/check.h); in builds with --config=cuda nvcc
// compiles it for a GPU, too.
//
//   __global__ void Double(float* x) {
//     // YOUR CODE
//     KernelIsNotDone();
//   }
//   D2L_ANSWER("double", Double);

#ifndef D2L_COMMON_EXERCISE_KERNEL_H_
#define D2L_COMMON_EXERCISE_KERNEL_H_

#include <cmath>

#include "common/exercise/answer.h"
#include "common/exercise/gpu_run.h"
#include "common/kernels/cuda/fake/words.h"

namespace d2l {

// Stands in a kernel that is still to be written. A kernel cannot throw.
#ifndef __CUDACC__
void KernelIsNotDone();
#else
__device__ inline void KernelIsNotDone() {}

// Of nvcc's object there is the kernel; the answer is the other one's.
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
