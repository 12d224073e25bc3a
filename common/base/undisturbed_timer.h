// UndisturbedTimer: a timer that also knows what other programs did to it.
//
//   const UndisturbedTimer timer;
//   Work();
//   const Elapsed took = timer.Read();
//   took.seconds;             // 0.021
//   took.undisturbed->least;  // 0.010: without other programs it would have
//   took.undisturbed->most;   // 0.012  taken no less, and no more
//
// The kernel counts how long each thread ran, and how long it was ready to run
// and had no core (/proc/self/task/*/schedstat; Linux,
// Documentation/scheduler/sched-stats.rst). With cores of its own, the work
// takes
//
//   at least what the busiest thread ran, and what all slept, less what is lost
//   only where cores are short: looking for what another thread will do
//   (SpinWait), and being put on a core again;
//   at most what it took, less what a thread waited while none ran.
//
// So the bounds of work for one thread are narrow, and those of work in
// parallel as far apart as its threads could have run side by side.
//
// What is not seen: other programs' use of shared caches and of a core's second
// hyper-thread, what a host takes from a virtual machine, other processes of
// this program, threads that end while the timer runs, and what goes on while a
// thread waits without one of this program's, on a GPU or a sleeping thread's
// clock.
//
// Used by one thread. To make one, and to read it, takes about 5 us for each
// thread of the program, outside of what is timed.

#ifndef D2L_COMMON_BASE_UNDISTURBED_TIMER_H_
#define D2L_COMMON_BASE_UNDISTURBED_TIMER_H_

#include <map>
#include <optional>

#include "common/base/timer.h"

namespace d2l {

struct Bounds {
  double least = 0;
  double most = 0;
};

// In seconds.
struct Elapsed {
  double seconds = 0;
  std::optional<Bounds> undisturbed;  // nothing where the kernel does not say
};

// A part of what `whole` took: what the threads waited may all lie in it.
Elapsed Part(double seconds, const Elapsed& whole);

// Of this process, in seconds.
struct ProcessTimes {
  struct Thread {
    double run = 0;
    double waited = 0;  // for a core
    double slices = 0;  // how often it was put on one
  };
  std::map<int, Thread> threads;  // by id; empty if the kernel does not say
  double run = 0;                 // all threads, those that have ended, too
  // SpinWait: of the calling thread, and of all others.
  int self = 0;
  double self_spun = 0, others_spun = 0;

  // Reads the threads, and what they waited.
  void ReadWaits();
  // Reads how long the threads that are known ran.
  void ReadRuns();
};

// What `seconds` between the two readings would have been without other
// programs. Nothing if it is not known, or one of the threads has ended.
std::optional<Bounds> Undisturbed(double seconds, const ProcessTimes& before,
                                  const ProcessTimes& after);

class UndisturbedTimer {
 public:
  UndisturbedTimer();

  double Seconds() const { return timer_.Seconds(); }
  Elapsed Read() const;

 private:
  ProcessTimes before_;
  Timer timer_;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_UNDISTURBED_TIMER_H_
