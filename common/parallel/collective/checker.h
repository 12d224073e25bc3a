// Proofs of schedules and plans, by computing with symbols instead of numbers.
//
//   const auto ring = AllReduceSchedule(AllReduceAlgorithm::kRing, 4);
//   CheckResult(ring).ok();           // all ranks end with the sum of all
//   CheckOrder(MakePlan(ring)).ok();  // no two moves meet
//   AddendsAfter(ring)->at(2);        // of rank 0, chunk 2: {2, 3, 0, 1}
//
// Both together mean that streams which execute the plan get the result,
// whatever they do at the same time and however long each move takes.
//
// Pure functions. They return FailedPrecondition that names the first thing
// that is wrong.

#ifndef D2L_COMMON_PARALLEL_COLLECTIVE_CHECKER_H_
#define D2L_COMMON_PARALLEL_COLLECTIVE_CHECKER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/parallel/collective/plan.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {

// The ranks whose initial values a chunk is the sum of, in the order in which
// they were added: {2, 3, 0} is (2 + 3) + 0. As a + b is b + a, the first two
// are the lower one first. Empty for memory that nothing was written to.
using Addends = std::vector<int>;

// What chunk c of rank r holds after all moves, at r * chunks + c. An error if
// a move reads what was never written, or adds two sums.
absl::StatusOr<std::vector<Addends>> AddendsAfter(
    const CollectiveSchedule& schedule);

// Whether the moves, one after the other, give every rank the sum of all, all
// of them added in the same order.
absl::Status CheckResult(const CollectiveSchedule& schedule);

// Whether every two moves that touch the same chunk, one of them writing, are
// ordered by the ranks' own order and the plan's waits.
absl::Status CheckOrder(const Plan& plan);

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_COLLECTIVE_CHECKER_H_
