// Functions that the judges of schedules share: an answer is a list of moves.

#ifndef D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_MOVES_H_
#define D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_MOVES_H_

#include <functional>
#include <string>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {

// The moves that an answer makes for n ranks, as it makes them.
std::vector<Move> MovesOf(void (*answer)(int n,
                                         const std::function<void(Move)>& move),
                          int n);

// An allreduce of these moves, in the order of their steps. Wrong if moves of
// one step depend on each other, or if some rank does not end with the sum of
// all ranks, in the order of rank 0; `look` then says what to look at. Ranks
// and chunks must be in range.
CollectiveSchedule ExpectAllReduce(const Judging& judging,
                                   const std::string& input,
                                   std::vector<Move> moves, int ranks,
                                   int chunks, const std::string& look);

// Wrong if the moves, of an allreduce of n ranks, have more than 2 (n - 1)
// steps.
void ExpectFewSteps(const Judging& judging, const std::string& input,
                    const std::vector<Move>& moves, int n);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_MOVES_H_
