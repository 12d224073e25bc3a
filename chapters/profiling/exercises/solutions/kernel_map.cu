// kernel_map: a thread for each number.
//
//   bazel run //:exercises -- kernel_map

#include "common/exercise/kernel.h"

namespace d2l {
namespace {

// y = a x + y. The grid has exactly as many threads as there are numbers:
// gridDim.x blocks of blockDim.x threads, 0 <= blockIdx.x < gridDim.x,
// 0 <= threadIdx.x < blockDim.x.
__global__ void Axpy(float a, const float* x, float* y) {
  // SOLUTION
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = a * x[i] + y[i];
  // END
}

D2L_ANSWER("kernel_map", Axpy);

}  // namespace
}  // namespace d2l
