// what_to_shard: shard no more than memory requires.
//
//   bazel run //:exercises -- what_to_shard

#include "chapters/multi_gpu/exercises/judges/what_to_shard.h"

#include <cstdint>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// The way to shard with which a step fits into a device's memory, and into what
// its link may carry. Of several the one that moves the fewest bytes; of those
// that move as many, the first. kNoneFits if none does.
//
// A device receives (devices - 1) / devices of the parameters' bytes whenever
// gradients are added up into shards, or shards are gathered to a whole. A sum
// that all devices have is both, one after the other.
Sharded WhatToShard(const Cluster& c) {
  // YOUR CODE
  throw NotDone();
}

D2L_ANSWER("what_to_shard", WhatToShard);

}  // namespace
}  // namespace d2l
