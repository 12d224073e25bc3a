// softmax_row: a warp for each row.
//
//   bazel run //:exercises -- softmax_row

#include "common/exercise/kernel.h"

namespace d2l {
namespace {

// y = exp(x - max(x)) / sum of these, of each row of a matrix with `columns`
// columns. Row r is the work of block r, which is one warp: 32 threads.
// __shfl_xor_sync(0xffffffff, value, m) hands a thread the value of thread
// threadIdx.x ^ m, without shared memory: with m = 16, 8, 4, 2, 1 all threads
// get the sum, or the largest, of all 32.
__global__ void SoftmaxRow(float* y, const float* x, int columns) {
  // YOUR CODE
  KernelIsNotDone();
}

D2L_ANSWER("softmax_row", SoftmaxRow);

}  // namespace
}  // namespace d2l
