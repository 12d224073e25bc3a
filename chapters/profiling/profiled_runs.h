// Work that is run several times under a profiler, and what the profiles say.
//
//   const ProfiledRuns runs = RunProfiled(cell, "3x3", device, [&] { … });
//   std::cout << KeyAverages(runs.last).Table();
//   cell.Claim("…", Less(runs.device, runs.total, 1.3));
//
// Used by one thread.

#ifndef D2L_CHAPTERS_PROFILING_PROFILED_RUNS_H_
#define D2L_CHAPTERS_PROFILING_PROFILED_RUNS_H_

#include <functional>
#include <string>

#include "common/device/device.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"
#include "common/profiler/profile.h"

namespace d2l {

// Seconds of each run, summarised. All are reported as figures of the cell.
struct ProfiledRuns {
  Figure requests;  // the front end's own time for all operations and views
  Figure device;    // the device's own time
  Figure total;     // from the beginning to the end of the work
  Profile last;     // of the last run
};

// Runs `work`, which enqueues on `device`, once to warm up and then nine times
// under a profiler; each time waits until it is done.
ProfiledRuns RunProfiled(Cell& cell, const std::string& label, Device device,
                         const std::function<void()>& work);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_PROFILED_RUNS_H_
