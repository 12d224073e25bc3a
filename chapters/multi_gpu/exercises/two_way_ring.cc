// two_way_ring: use the cables in both directions.
//
//   bazel run //:exercises -- two_way_ring

#include "chapters/multi_gpu/exercises/judges/two_way_ring.h"

#include <functional>

#include "common/exercise/exercise.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {
namespace {

// An allreduce over a ring of n ranks whose cables carry both directions at the
// same time. The arrays have 2 n chunks. A rank may fetch from both of its
// neighbours. Moves of one step are made at the same time, and there are as
// many steps as in one ring, 2 (n - 1).
void TwoWayRing(int n, const std::function<void(Move)>& move) {
  // YOUR CODE
  throw NotDone();
}

D2L_ANSWER("two_way_ring", TwoWayRing);

}  // namespace
}  // namespace d2l
