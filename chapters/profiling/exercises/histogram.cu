// histogram: many threads count into few counters.
//
//   bazel run //:exercises -- histogram

#include "common/exercise/kernel.h"

namespace d2l {
namespace {

// counts[b] is how often b is among the n numbers of x, each in 0 ... bins - 1,
// at most 256 bins. The counts begin at 0. Blocks have 128 threads, and there
// are fewer threads than numbers: thread t of all takes t, t + all, t + 2 all,
// ... A block counts in shared memory; then it adds what it has counted to
// counts, with one atomicAdd for each bin.
__global__ void Histogram(int* counts, const int* x, int n, int bins) {
  // YOUR CODE
  KernelIsNotDone();
}

D2L_ANSWER("histogram", Histogram);

}  // namespace
}  // namespace d2l
