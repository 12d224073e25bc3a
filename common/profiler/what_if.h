// WhatIf: the time of a recorded program if the machine or the program were
// different. The program is played again with one thing changed (play.h).
//
//   ProgramRecorder recorder;
//   for (int i = 0; i < 10; ++i) Item(Sum(MatMul(x, x)));
//   const WhatIf what_if(recorder.Stop());
//   std::cout << what_if.ToText();
//
//   recorded: 30 operations, 1.21 ms, on cpu:0; played again: 1.20 ms
//   what would change      it would take    because
//   enqueueing free              1.18 ms    the front end takes 31.0 us of …
//   no wait in a.cc:12           1.01 ms    cpu:0 idles 180 us behind it
//
// The changes are sorted by gain, the largest last. Times of other machines are
// marked SIMULATED. A wait that is left out may be needed: the program may read
// data that is not there yet, which a play does not see.
//
// The changes are functions of their own, and can be combined.
//
// Pure functions and values: any thread may use them.

#ifndef D2L_COMMON_PROFILER_WHAT_IF_H_
#define D2L_COMMON_PROFILER_WHAT_IF_H_

#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/profiler/peaks.h"
#include "common/profiler/play.h"
#include "common/profiler/program_recorder.h"

namespace d2l {

// Enqueueing takes no time.
PlayedProgram WithFreeRequests(PlayedProgram program);
// The host waits in that line only if it enqueues no work after it.
PlayedProgram WithoutWaits(PlayedProgram program, SourceLocation at);
// The host waits for each operation, as with launch blocking.
PlayedProgram WithWaits(PlayedProgram program);
// The program on this number of devices, each with one stream for operations.
// Each operation runs on the device on which it can begin first, given its
// inputs; moving data takes no time. Other work stays on streams of its own.
PlayedProgram OnDevices(PlayedProgram program, int devices);
// The work of that name, such as "matmul", is `times` times as fast.
PlayedProgram Faster(PlayedProgram program, double times,
                     const std::string& name);
// The work on another machine: its time is computed from its operations and
// bytes, and from the peaks of the machine that it was recorded on.
PlayedProgram OnMachine(PlayedProgram program, const PlayedMachine& machine,
                        const Peaks& here);

struct WhatIf {
  struct Change {
    std::string what;
    double seconds = 0;
    std::string because;
  };

  // here: the peaks of the machine that it was recorded on; without them, no
  // other machine is played.
  explicit WhatIf(RecordedProgram of, const Peaks& here = {});

  // In the run's language.
  std::string ToText() const;

  RecordedProgram recorded;
  // The time of the unchanged program when played; it differs from the recorded
  // time by the cost of recording.
  double seconds = 0;
  std::vector<Change> changes;  // the smallest gain first
};

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_WHAT_IF_H_
