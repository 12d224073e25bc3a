// For exercises that are kernels. nvcc compiles such a file for a GPU; the C++
// compiler compiles it for the check of kernels, which every machine can run
// (common/kernels/cuda/fake/check.h).
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
#include "common/kernels/cuda/fake/words.h"

namespace d2l {

// Stands in a kernel that is still to be written. A kernel cannot throw.
#ifdef __CUDACC__
__device__ inline void KernelIsNotDone() {}
#else
void KernelIsNotDone();
#endif

}  // namespace d2l

#endif  // D2L_COMMON_EXERCISE_KERNEL_H_
