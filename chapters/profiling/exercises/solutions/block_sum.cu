// block_sum: 256 threads add up.
//
//   bazel run //:exercises -- block_sum

#include "common/exercise/kernel.h"

namespace d2l {
namespace {

// sums[b] is the sum of the 256 numbers x[256 b], x[256 b + 1], ..., or as many
// of them as there are: x has n. Blocks have 256 threads. In each step half of
// the threads add, each the number of another one, until one is left. Threads
// that add are neighbours, so that a warp works or rests as a whole.
__global__ void BlockSum(float* sums, const float* x, int n) {
  // SOLUTION
  __shared__ float sum[256];
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  sum[t] = i < n ? x[i] : 0;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sum[t] += sum[t + half];
  }
  if (t == 0) sums[blockIdx.x] = sum[0];
  // END
}

D2L_ANSWER("block_sum", BlockSum);

}  // namespace
}  // namespace d2l
