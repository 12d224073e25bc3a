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
  // YOUR CODE
  KernelIsNotDone();
}

D2L_ANSWER("block_sum", BlockSum);

}  // namespace
}  // namespace d2l
