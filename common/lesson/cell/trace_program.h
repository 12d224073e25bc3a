// ProfileProgram runs a part of a lesson and returns the times of its
// operations; TraceProgram also returns the operations as a graph.
//
//   const TracedProgram run = TraceProgram([&] { z = x * y + 2; });
//   cell.Show(DrawGraph(run.graph, "z = x * y + 2"));
//   cell.Show(Timeline(run.profile).Draw("timeline"));
//   cell.Show(Timeline(ProfileProgram([&] { z = x * y; })).Draw("mul"));
//
// Thread-safety: any thread may call it. The graph is of the calling thread's
// operations; the profile is of all threads'.
//
// Errors: an operation that failed or was skipped has no times. The failure
// itself surfaces at the next Synchronize; exceptions of `program` are passed
// on.

#ifndef D2L_COMMON_LESSON_CELL_TRACE_PROGRAM_H_
#define D2L_COMMON_LESSON_CELL_TRACE_PROGRAM_H_

#include <functional>

#include "common/graph/program_graph.h"
#include "common/profiler/profile.h"

namespace d2l {

struct TracedProgram {
  ProgramGraph graph;  // its operations have the profile's times
  Profile profile;
};

// Both run the program, and wait until the devices have finished its work.
Profile ProfileProgram(const std::function<void()>& program);
TracedProgram TraceProgram(const std::function<void()>& program);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_CELL_TRACE_PROGRAM_H_
