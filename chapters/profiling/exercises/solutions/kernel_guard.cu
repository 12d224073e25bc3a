// kernel_guard: more threads than numbers.
//
//   bazel run //:exercises -- kernel_guard

#include "common/exercise/kernel.h"

namespace d2l {
namespace {

// y = a x + y, of n numbers. Blocks have 256 threads, and there are as many
// blocks as it takes, one at least: the last has threads without a number.
__global__ void Axpy(float a, const float* x, float* y, int n) {
  // SOLUTION
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
  // END
}

D2L_ANSWER("kernel_guard", Axpy);

}  // namespace
}  // namespace d2l
