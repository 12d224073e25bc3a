// ring_with_a_hole: the second half of a ring allreduce.
//
//   bazel run //:exercises -- ring_with_a_hole

#include <functional>

#include "common/exercise/exercise.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {
namespace {

// An allreduce over a ring: n ranks in a circle, each array in n chunks. Calls
// move({step, to, from, chunk, op}) for each move; rank `to` fetches from its
// left neighbour only, rank (to + n - 1) % n.
void RingMoves(int n, const std::function<void(Move)>& move) {
  // Sums go round: afterwards rank r has the whole sum of chunk (r + 1) % n.
  for (int step = 0; step < n - 1; ++step) {
    for (int to = 0; to < n; ++to) {
      const int left = (to + n - 1) % n;
      const int chunk = (left - step + n) % n;
      move({step, to, left, chunk, MoveOp::kAdd});
    }
  }
  // Now the whole sums go round.
  // SOLUTION
  for (int step = 0; step < n - 1; ++step) {
    for (int to = 0; to < n; ++to) {
      const int left = (to + n - 1) % n;
      const int chunk = (to - step + n) % n;
      move({n - 1 + step, to, left, chunk, MoveOp::kCopy});
    }
  }
  // END
}

D2L_ANSWER("ring_with_a_hole", RingMoves);

}  // namespace
}  // namespace d2l
