// ProgramRecorder: records a program's requests to its devices and their times,
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
// host, and the host's own time between them. Other work on a stream counts as
// a part of the operation behind it. From the times it computes how long
// workers and the front end need to wake up; Stop measures the wake-ups that
// the program does not show. The time of the recording itself, some 0.2 us for
// each request, is left out.
//
// On a GPU the times of CopyAsync and HostCallback are not known, and count as
// 0. With launch blocking every wait counts as the host's own time.
//
// Listens to all threads until Stop. Thread-safe, except for Stop, which throws
// the same errors as Synchronize. Streams must outlive it.

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
  std::vector<Device> devices;  // PlayedProgram::device_of has their indices
};

class ProgramRecorder {
 public:
  ProgramRecorder();
  ~ProgramRecorder();
  ProgramRecorder(const ProgramRecorder&) = delete;
  ProgramRecorder& operator=(const ProgramRecorder&) = delete;

  // Waits until the enqueued work is done. Call it once.
  RecordedProgram Stop();

 private:
  class Log;
  // Measures how soon threads that wait for these devices continue.
  static PlayedMachine Measure(const std::vector<Device>& devices);

  std::unique_ptr<Log> log_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_PROGRAM_RECORDER_H_
