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
  // SOLUTION
  const int lane = threadIdx.x;
  const float* const from = x + blockIdx.x * columns;
  float* const to = y + blockIdx.x * columns;
  float largest = -INFINITY;
  for (int i = lane; i < columns; i += 32) largest = fmaxf(largest, from[i]);
  for (int m = 16; m > 0; m /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, m));
  }
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum += expf(from[i] - largest);
  for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = lane; i < columns; i += 32) {
    to[i] = expf(from[i] - largest) / sum;
  }
  // END
}

D2L_ANSWER("softmax_row", SoftmaxRow);

}  // namespace
}  // namespace d2l
