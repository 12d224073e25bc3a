// UndisturbedTimer: a timer that also bounds the time without other programs.
//
//   const UndisturbedTimer timer;
//   Work();
//   const Elapsed took = timer.Read();
//   took.seconds;             // 0.021
//   took.undisturbed->least;  // 0.010: without other programs, at least
//   took.undisturbed->most;   // 0.012  this and at most that
//
// The kernel counts how long each thread ran, and how long it was ready to run
// and had no core (/proc/self/task/*/schedstat; Linux,
// Documentation/scheduler/sched-stats.rst). With cores of its own, the work
// takes
//
//   at least the time that the busiest thread ran plus the time when all
//   threads slept, minus costs that arise only when cores are short: polling
//   (SpinWait), and being scheduled on a core again;
//   at most the measured time minus the time when a thread waited for a core
//   and none ran.
//
// So the bounds are narrow for work on one thread. For parallel work they are
// as far apart as the times of a serial and of a parallel execution.
//
// The timer does not see other programs' use of shared caches and of a core's
// second hyper-thread, what a host takes from a virtual machine, other
// processes of this program, threads that end while the timer runs, and what
// progresses without a core while a thread waits for one: a GPU's work, or a
// sleep with a timeout.
//
// For one thread. The constructor and Read take about 5 us for each thread of
// the program; the measured time does not include this.

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
  std::optional<Bounds> undisturbed;  // nullopt if the kernel reports none
};

// The bounds of a part of `whole`, which may contain all of its waiting.
Elapsed Part(double seconds, const Elapsed& whole);

// The times of this process, in seconds.
struct ProcessTimes {
  struct Thread {
    double run = 0;
    double waited = 0;  // for a core
    double slices = 0;  // how often it got one
  };
  std::map<int, Thread> threads;  // by id; empty if the kernel does not say
  double run = 0;                 // all threads, including ended ones
  double reading = 0;             // how long it took to read these
  // SpinWait's times: of the calling thread, and of all others.
  int self = 0;
  double self_spun = 0, others_spun = 0;

  // Reads which threads there are, and how long they have waited.
  void ReadWaits();
  // Reads how long these threads have run.
  void ReadRuns();
};

// How long the `seconds` between the two readings would have been without other
// programs; nullopt if that is unknown or a thread has ended.
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
