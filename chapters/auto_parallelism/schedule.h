// Judges whether the devices kept to the order that the data needs.
//
//   const TracedProgram run = TraceProgram([&] { z = To(x, device) * y; });
//   cell.Claim("{} operations began before their inputs were there.",
//              FollowsTheData(run.graph));
//
// Pure functions.

#ifndef D2L_CHAPTERS_AUTO_PARALLELISM_SCHEDULE_H_
#define D2L_CHAPTERS_AUTO_PARALLELISM_SCHEDULE_H_

#include "common/graph/program_graph.h"
#include "common/lesson/cell/judge.h"

namespace d2l {

// How many operations did not run, or began before one that they depend on
// ended.
int EarlyStarts(const ProgramGraph& graph);

// HOLDS if there are none; INCONCLUSIVE if no dependency is between streams.
Judgement FollowsTheData(const ProgramGraph& graph);

}  // namespace d2l

#endif  // D2L_CHAPTERS_AUTO_PARALLELISM_SCHEDULE_H_
