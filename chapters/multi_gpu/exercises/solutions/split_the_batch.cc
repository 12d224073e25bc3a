// split_the_batch: how many samples each device gets.
//
//   bazel run //:exercises -- split_the_batch

#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// How many samples of a batch each device gets, by device: all samples
// together, and no device more than one more than another. There is at least
// one device; with fewer samples than devices some get 0.
std::vector<int> ShardSizes(int samples, int devices) {
  // SOLUTION
  std::vector<int> sizes(devices, samples / devices);
  for (int i = 0; i < samples % devices; ++i) ++sizes[i];
  return sizes;
  // END
}

D2L_ANSWER("split_the_batch", ShardSizes);

}  // namespace
}  // namespace d2l
