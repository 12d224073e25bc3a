#include <functional>

#include "common/exercise/exercise.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {
namespace {

namespace rank_0_adds {
void SplitMoves(int n, const std::function<void(Move)>& move) {
  for (int rank = 1; rank < n; ++rank) {
    for (int chunk = 0; chunk < n; ++chunk) {
      move({rank, 0, rank, chunk, MoveOp::kAdd});
    }
  }
  for (int rank = 1; rank < n; ++rank) {
    for (int chunk = 0; chunk < n; ++chunk) {
      move({n + rank, rank, 0, chunk, MoveOp::kCopy});
    }
  }
}
}  // namespace rank_0_adds

namespace all_ask_the_same {
void SplitMoves(int n, const std::function<void(Move)>& move) {
  for (int other = 0; other < n; ++other) {
    for (int rank = 0; rank < n; ++rank) {
      if (rank != other) move({other, rank, other, rank, MoveOp::kAdd});
    }
  }
  for (int other = 0; other < n; ++other) {
    for (int rank = 0; rank < n; ++rank) {
      if (rank != other) move({n + other, rank, other, other, MoveOp::kCopy});
    }
  }
}
}  // namespace all_ask_the_same

namespace not_given_back {
void SplitMoves(int n, const std::function<void(Move)>& move) {
  for (int step = 0; step < n - 1; ++step) {
    for (int rank = 0; rank < n; ++rank) {
      move({step, rank, (rank + 1 + step) % n, rank, MoveOp::kAdd});
    }
  }
}
}  // namespace not_given_back

namespace adds_itself {
void SplitMoves(int n, const std::function<void(Move)>& move) {
  for (int step = 0; step < n; ++step) {
    for (int rank = 0; rank < n; ++rank) {
      move({step, rank, (rank + 1 + step) % n, rank, MoveOp::kAdd});
    }
  }
  for (int step = 0; step < n - 1; ++step) {
    for (int rank = 0; rank < n; ++rank) {
      const int other = (rank + 1 + step) % n;
      move({n + step, rank, other, other, MoveOp::kCopy});
    }
  }
}
}  // namespace adds_itself

namespace counts_from_1 {
void SplitMoves(int n, const std::function<void(Move)>& move) {
  for (int step = 1; step < n; ++step) {
    for (int rank = 1; rank <= n; ++rank) {
      move({step, rank, (rank + step) % n + 1, rank, MoveOp::kAdd});
    }
  }
}
}  // namespace counts_from_1

namespace one_move_a_step {
void SplitMoves(int n, const std::function<void(Move)>& move) {
  int step = 0;
  for (int turn = 1; turn < n; ++turn) {
    for (int rank = 0; rank < n; ++rank) {
      move({step++, rank, (rank + turn) % n, rank, MoveOp::kAdd});
    }
  }
  for (int turn = 1; turn < n; ++turn) {
    for (int rank = 0; rank < n; ++rank) {
      const int other = (rank + turn) % n;
      move({step++, rank, other, other, MoveOp::kCopy});
    }
  }
}
}  // namespace one_move_a_step

D2L_MISTAKE("split_allreduce", rank_0_adds, SplitMoves, "receives the most");
D2L_MISTAKE("split_allreduce", all_ask_the_same, SplitMoves,
            "from the same rank");
D2L_MISTAKE("split_allreduce", not_given_back, SplitMoves,
            "Every rank has a part of the sum");
D2L_MISTAKE("split_allreduce", adds_itself, SplitMoves, "from all other ranks");
D2L_MISTAKE("split_allreduce", counts_from_1, SplitMoves,
            "ranks and chunks of 0 to");
D2L_MISTAKE("split_allreduce", one_move_a_step, SplitMoves,
            "2 (n - 1) steps are enough");

}  // namespace
}  // namespace d2l
