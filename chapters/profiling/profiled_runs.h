// Runs work several times with a profiler and without, prints the profiles, and
// writes times in words.
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
#include "common/lesson/cell/cell.h"

namespace d2l::profiling {

// Seconds of each repeat, summarised. All are reported as figures of the cell.
struct ProfiledRuns {
  // Until the calls had returned, less their wait for room in a full queue.
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

// Prints what a profiler sees of `work`.
void PrintProfile(const Cell& cell, const std::function<void()>& work);

// "12.3 ms"; of a timing, its completion.
std::string Took(const Figure& time);
std::string Took(const Timing& timing);
// "alone took 4.10 ms, beside other load 8.30 ms."
std::string Took(const Figure& a, const Figure& b);

}  // namespace d2l::profiling

#endif  // D2L_CHAPTERS_PROFILING_PROFILED_RUNS_H_
