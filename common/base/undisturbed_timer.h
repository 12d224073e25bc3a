// UndisturbedTimer: a timer that knows whether other programs disturbed what it
// timed.
//
//   const UndisturbedTimer timer;
//   Work();
//   const Elapsed took = timer.Read();
//   took.seconds;      // 0.0021
//   took.undisturbed;  // true: a quiet machine takes 2.1 ms as well
//
// The kernel counts how long each thread was ready to run and had no core
// (/proc/self/task/*/schedstat; Linux,
// Documentation/scheduler/sched-stats.rst). A time is undisturbed if all
// threads of the program together waited for less than 3 % of it and 20 us, or
// had nearly all of the program's cores: then they waited for each other only.
// Beside other programs some repeats of a short measurement are undisturbed,
// since a thread loses its core for a time slice of milliseconds, or not at
// all.
//
// Where the kernel does not count (in some containers) all times are
// undisturbed.
//
// The timer does not see other programs' use of shared caches and of a core's
// second hyper-thread, what a host takes from a virtual machine, and other
// processes of this program. A thread that ends while a timer runs calls
// KeepWaits, because the kernel forgets its count.
//
// For one thread. The constructor and Read take about 5 us for each thread of
// the program; the measured time does not include this.

#ifndef D2L_COMMON_BASE_UNDISTURBED_TIMER_H_
#define D2L_COMMON_BASE_UNDISTURBED_TIMER_H_

#include <map>
#include <utility>

#include "common/base/timer.h"

namespace d2l {

struct Elapsed {
  double seconds = 0;
  bool undisturbed = true;
};

// The times of this process, in seconds.
struct ProcessTimes {
  std::map<int, double> waited;  // of each thread, by id; empty if not known
  double ended_waited = 0;       // of threads that have ended: see KeepWaits
  double run = 0;                // all threads, including ended ones

  static ProcessTimes Read();
  // Of the calling thread alone.
  static ProcessTimes ReadThisThread();
};

// Waits of less than this part of a time disturb it little.
inline constexpr double kWaitedPart = 0.03;

// Whether the `seconds` between the two readings were undisturbed. cores: that
// the program may use.
bool Undisturbed(double seconds, const ProcessTimes& before,
                 const ProcessTimes& after, int cores,
                 double part = kWaitedPart);

class UndisturbedTimer {
 public:
  UndisturbedTimer() { timer_.Restart(); }
  // Counts the waits of the calling thread alone, and allows a tenth of the
  // time. For work on virtual devices at a pace, which catch up with what their
  // workers wait (device_table.h).
  static UndisturbedTimer OfThisThread() {
    return UndisturbedTimer(ProcessTimes::ReadThisThread());
  }

  double Seconds() const { return timer_.Seconds(); }
  Elapsed Read() const;

 private:
  // Of the thread whose times these are.
  explicit UndisturbedTimer(ProcessTimes before)
      : this_thread_(true), before_(std::move(before)) {
    timer_.Restart();
  }

  const bool this_thread_ = false;
  const ProcessTimes before_ = ProcessTimes::Read();
  Timer timer_;
};

// Called at the end of a thread that lives shorter than what is timed.
void KeepWaits();

}  // namespace d2l

#endif  // D2L_COMMON_BASE_UNDISTURBED_TIMER_H_
