// Plan: a schedule with the waits that streams need to execute it, one stream
// for each rank.
//
//   const auto star = AllReduceSchedule(AllReduceAlgorithm::kStar, 4);
//   const Plan plan = MakePlan(star);
//   for (const PlannedMove& planned : plan.moves) {
//     // rank planned.move.to waits for plan.moves[w], for each w of
//     // planned.waits, and then makes the move
//   }
//
// A rank's moves are made in order, each after those that it waits for. The
// waits are derived from what the moves read and write: a read follows the last
// write, a write follows the last write and all reads of it. No wait is there
// twice, or follows from others: without any one of them two moves could meet.
//
// A plan begins with a kBegin for each rank and ends with a kEnd for each:
// these stand for the work before and after the collective, which may write
// everything.
//
// Values.

#ifndef D2L_COMMON_PARALLEL_COLLECTIVE_PLAN_H_
#define D2L_COMMON_PARALLEL_COLLECTIVE_PLAN_H_

#include <vector>

#include "absl/functional/function_ref.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {

struct PlannedMove {
  Move move;
  std::vector<int> waits;  // for moves of other ranks; numbers in the plan
  bool awaited = false;    // some move waits for it
};

struct Plan {
  int ranks;  // without the CPU's memory
  int participants;
  int chunks;
  std::vector<PlannedMove> moves;
};

Plan MakePlan(const CollectiveSchedule& schedule);

// Calls f(rank, chunk, is_write) for what the move touches. A chunk that is
// read and written is written.
void ForEachAccess(const Plan& plan, const Move& move,
                   absl::FunctionRef<void(int, int, bool)> f);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_COLLECTIVE_PLAN_H_
