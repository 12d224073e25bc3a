#include <functional>

#include "common/exercise/exercise.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {
namespace {

void AddUp(int n, const std::function<void(Move)>& move) {
  for (int step = 0; step < n - 1; ++step) {
    for (int to = 0; to < n; ++to) {
      const int left = (to + n - 1) % n;
      move({step, to, left, (left - step + n) % n, MoveOp::kAdd});
    }
  }
}

namespace a_step_short {
void RingMoves(int n, const std::function<void(Move)>& move) {
  AddUp(n, move);
  for (int step = 0; step < n - 2; ++step) {
    for (int to = 0; to < n; ++to) {
      const int left = (to + n - 1) % n;
      move({n - 1 + step, to, left, (to - step + n) % n, MoveOp::kCopy});
    }
  }
}
}  // namespace a_step_short

namespace adds_again {
void RingMoves(int n, const std::function<void(Move)>& move) {
  AddUp(n, move);
  for (int step = 0; step < n - 1; ++step) {
    for (int to = 0; to < n; ++to) {
      const int left = (to + n - 1) % n;
      move({n - 1 + step, to, left, (to - step + n) % n, MoveOp::kAdd});
    }
  }
}
}  // namespace adds_again

namespace another_chunk {
void RingMoves(int n, const std::function<void(Move)>& move) {
  AddUp(n, move);
  for (int step = 0; step < n - 1; ++step) {
    for (int to = 0; to < n; ++to) {
      const int left = (to + n - 1) % n;
      move({n - 1 + step, to, left, (left - step + n) % n, MoveOp::kCopy});
    }
  }
}
}  // namespace another_chunk

namespace a_step_too_many {
void RingMoves(int n, const std::function<void(Move)>& move) {
  AddUp(n, move);
  for (int step = 0; step < n; ++step) {
    for (int to = 0; to < n; ++to) {
      const int left = (to + n - 1) % n;
      move({n - 1 + step, to, left, (to - step + n) % n, MoveOp::kCopy});
    }
  }
}
}  // namespace a_step_too_many

namespace from_the_right {
void RingMoves(int n, const std::function<void(Move)>& move) {
  AddUp(n, move);
  for (int step = 0; step < n - 1; ++step) {
    for (int to = 0; to < n; ++to) {
      const int right = (to + 1) % n;
      move({n - 1 + step, to, right, (to + 2 + step) % n, MoveOp::kCopy});
    }
  }
}
}  // namespace from_the_right

namespace steps_begin_again {
void RingMoves(int n, const std::function<void(Move)>& move) {
  AddUp(n, move);
  for (int step = 0; step < n - 1; ++step) {
    for (int to = 0; to < n; ++to) {
      const int left = (to + n - 1) % n;
      move({step, to, left, (to - step + n) % n, MoveOp::kCopy});
    }
  }
}
}  // namespace steps_begin_again

D2L_MISTAKE("ring_with_a_hole", a_step_short, RingMoves, "A move is missing");
D2L_MISTAKE("ring_with_a_hole", adds_again, RingMoves, "Copy finished sums");
D2L_MISTAKE("ring_with_a_hole", another_chunk, RingMoves,
            "which finished chunk");
D2L_MISTAKE("ring_with_a_hole", a_step_too_many, RingMoves,
            "2 (n - 1) steps are enough");
D2L_MISTAKE("ring_with_a_hole", from_the_right, RingMoves,
            "The left neighbour of");
D2L_MISTAKE("ring_with_a_hole", steps_begin_again, RingMoves,
            "Give later moves a later step");

}  // namespace
}  // namespace d2l
