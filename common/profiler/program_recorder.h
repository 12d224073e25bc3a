// ProgramRecorder: what a program asks of its devices, and how long each took,
// to be played on another machine (play.h).
//
//   ProgramRecorder recorder;
//   for (int i = 0; i < 10; ++i) y = MatMul(x, x);
//   Synchronize(x.device());
//   const RecordedProgram recorded = recorder.Stop();
//   recorded.seconds;                                  // as it ran
//   Play(recorded.program, recorded.machine).seconds;  // played
//
// It sees operations, copies, callbacks, events, waits of streams and of the
// host, and the host's own time between them. What else runs on a stream counts
// as a part of the operation behind it. From the times it takes how long
// workers and the front end need to wake up; what the program does not show is
// measured, in Stop. What it needs itself, some 0.2 us for each request, is
// left out.
//
// On a GPU the times of CopyAsync and HostCallback are not known, and count as
// none. With launch blocking every wait counts as the host's own time.
//
// Listens to all threads until Stop; thread-safe, but for Stop, which throws
// what Synchronize would. Streams outlive it.

#ifndef D2L_COMMON_PROFILER_PROGRAM_RECORDER_H_
#define D2L_COMMON_PROFILER_PROGRAM_RECORDER_H_

#include <memory>
#include <vector>

#include "common/device/device.h"
#include "common/profiler/play.h"

namespace d2l {

struct RecordedProgram {
  PlayedProgram program;
  PlayedMachine machine;        // the one that it ran on
  double seconds = 0;           // until the last work was done
  std::vector<Device> devices;  // PlayedProgram::device_of numbers these
};

class ProgramRecorder {
 public:
  ProgramRecorder();
  ~ProgramRecorder();
  ProgramRecorder(const ProgramRecorder&) = delete;
  ProgramRecorder& operator=(const ProgramRecorder&) = delete;

  // Waits until what was asked for is done. Once.
  RecordedProgram Stop();

 private:
  class Log;
  // How soon threads go on that wait for these devices.
  static PlayedMachine Measure(const std::vector<Device>& devices);

  std::unique_ptr<Log> log_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_PROGRAM_RECORDER_H_
