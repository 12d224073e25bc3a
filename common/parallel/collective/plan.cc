#include "common/parallel/collective/plan.h"

#include <algorithm>
#include <functional>

namespace d2l {
namespace {

// What has been done to a chunk of a rank's; numbers of moves.
struct Uses {
  int writer = -1;
  std::vector<int> readers;  // since then
};

// The last move of each rank that is known to be done; -1 for none.
using Clock = std::vector<int>;

class Planner {
 public:
  explicit Planner(Plan& plan)
      : plan_(plan),
        uses_(plan.participants * plan.chunks),
        now_(plan.participants, Clock(plan.participants, -1)) {}

  void Add(const Move& move) {
    const int number = static_cast<int>(plan_.moves.size());
    PlannedMove planned{move, {}};
    std::vector<int> before;
    ForEachAccess(plan_, move, [&](int rank, int chunk, bool write) {
      Uses& uses = uses_[rank * plan_.chunks + chunk];
      if (uses.writer >= 0) before.push_back(uses.writer);
      if (write) {
        before.insert(before.end(), uses.readers.begin(), uses.readers.end());
        uses = {number, {}};
      } else {
        uses.readers.push_back(number);
      }
    });
    // From the latest on: what one of them has waited for need not be waited
    // for again, and it cannot have waited for a later one.
    std::sort(before.begin(), before.end(), std::greater<>());
    Clock& now = now_[move.to];
    for (const int other : before) {
      const int rank = plan_.moves[other].move.to;
      if (rank == move.to || now[rank] >= other) continue;
      planned.waits.push_back(other);
      plan_.moves[other].awaited = true;
      for (int r = 0; r < plan_.participants; ++r) {
        now[r] = std::max(now[r], done_[other][r]);
      }
    }
    now[move.to] = number;
    done_.push_back(now);
    plan_.moves.push_back(std::move(planned));
  }

 private:
  Plan& plan_;
  std::vector<Uses> uses_;
  std::vector<Clock> now_;   // of each rank
  std::vector<Clock> done_;  // behind each move
};

}  // namespace

void ForEachAccess(const Plan& plan, const Move& move,
                   absl::FunctionRef<void(int, int, bool)> f) {
  switch (move.op) {
    case MoveOp::kCopy:
    case MoveOp::kAdd:
      f(move.from, move.chunk, false);
      f(move.to, move.chunk, true);
      return;
    case MoveOp::kSum:
      for (int rank = 0; rank < plan.ranks; ++rank) {
        if (rank != move.to) f(rank, move.chunk, false);
      }
      f(move.to, move.chunk, true);
      return;
    case MoveOp::kBegin:
    case MoveOp::kEnd:
      for (int chunk = 0; chunk < plan.chunks; ++chunk) {
        f(move.to, chunk, true);
      }
  }
}

Plan MakePlan(const CollectiveSchedule& schedule) {
  Plan plan{schedule.ranks(), schedule.participants(), schedule.chunks(), {}};
  Planner planner(plan);
  for (int rank = 0; rank < plan.participants; ++rank) {
    planner.Add({-1, rank, rank, 0, MoveOp::kBegin});
  }
  schedule.ForEach([&](const Move& move) { planner.Add(move); });
  for (int rank = 0; rank < plan.participants; ++rank) {
    planner.Add({-1, rank, rank, 0, MoveOp::kEnd});
  }
  return plan;
}

}  // namespace d2l
