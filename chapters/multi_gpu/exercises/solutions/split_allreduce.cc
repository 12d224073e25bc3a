// split_allreduce: every rank adds up a part.
//
//   bazel run //:exercises -- split_allreduce

#include <functional>

#include "common/exercise/exercise.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {
namespace {

// An allreduce of n ranks, each array in n chunks: calls
// move({step, to, from, chunk, op}) for each move, in an order in which they
// could be made one after the other. Moves of one step are made at the same
// time, and 2 (n - 1) steps are enough. Operations are MoveOp::kCopy and
// MoveOp::kAdd. The links are those of a switch: each rank receives, and sends,
// one chunk at a time.
void SplitMoves(int n, const std::function<void(Move)>& move) {
  // SOLUTION
  for (int step = 0; step < n - 1; ++step) {
    for (int rank = 0; rank < n; ++rank) {
      const int other = (rank + 1 + step) % n;
      move({step, rank, other, rank, MoveOp::kAdd});
    }
  }
  for (int step = 0; step < n - 1; ++step) {
    for (int rank = 0; rank < n; ++rank) {
      const int other = (rank + 1 + step) % n;
      move({n - 1 + step, rank, other, other, MoveOp::kCopy});
    }
  }
  // END
}

D2L_ANSWER("split_allreduce", SplitMoves);

}  // namespace
}  // namespace d2l
