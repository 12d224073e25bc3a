// Work that is run several times with a profiler and without, and what the
// profiles say.
//
//   const ProfiledRuns runs = RunProfiled(cell, "3x3", device, [&] { … });
//   PrintAverages(cell, KeyAverages(runs.last));
//   cell.Claim("…", Less(runs.device, runs.total, 1.3));
//
// Used by one thread.

#ifndef D2L_CHAPTERS_PROFILING_PROFILED_RUNS_H_
#define D2L_CHAPTERS_PROFILING_PROFILED_RUNS_H_

#include <functional>
#include <string>

#include "common/d2l.h"
#include "common/lesson/cell.h"

namespace d2l {

// Seconds of each repeat, summarised. All are reported as figures of the cell.
struct ProfiledRuns {
  // Until the calls had returned, without what they waited for room in a full
  // queue.
  Figure enqueueing;
  // Until the work was done; without the profiler, whose time would count.
  Figure total;
  Figure device;  // the device's own time, of a profiled run beside it
  Profile last;   // of the last run
};

// Runs `work`, which enqueues on `device`, once to warm up; then nine times
// without a profiler and with one, in turn. Each waits until it is done.
ProfiledRuns RunProfiled(Cell& cell, const Phrase& label, Device device,
                         const std::function<void()>& work);

// Prints how often each operation was called, how long enqueueing it took and
// how long the device worked; with --verbose PyTorch's table.
void PrintAverages(const Cell& cell, const KeyAverages& averages);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_PROFILED_RUNS_H_
