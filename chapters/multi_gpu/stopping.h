// Stopping on Ctrl-C and SIGTERM, for train.cc.
//
//   StopOnSignals();
//   SetStopText("\nStopping.\n");
//   while (StopSignal() == 0) { … }
//
// The first signal is noted, and the text written to stderr; the second one
// ends the program at once. Thread-safe, but for SetStopText: one thread's.

#ifndef D2L_CHAPTERS_MULTI_GPU_STOPPING_H_
#define D2L_CHAPTERS_MULTI_GPU_STOPPING_H_

#include <sys/types.h>

#include <string>

namespace d2l {

// In the background, where Ctrl-C does not count, the shell says so: that
// signal stays ignored.
void StopOnSignals();

// The signal that came; 0 if none has.
int StopSignal();

// What the first signal writes, at most 1000 bytes; "" for nothing.
void SetStopText(const std::string& text);
// Has it written half a second later instead, if it is not "" by then, and
// unless that process of this machine is there (0: it is on another one). For a
// process that speaks only if another one cannot.
void SpeakOnlyFor(pid_t other);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_STOPPING_H_
