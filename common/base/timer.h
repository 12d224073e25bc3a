// A stopwatch (the book's d2l.Timer) and the clock behind every figure.
//
//   Timer timer;
//   Work();
//   std::cout << timer.Seconds();
//
// A Timer measures wall time on a clock that never goes back. Reading it costs
// about 20 ns. Synchronize (common/device/device_table.h) before reading it, or
// it measures the enqueueing of asynchronous work, not the work.

#ifndef D2L_COMMON_BASE_TIMER_H_
#define D2L_COMMON_BASE_TIMER_H_

#include <time.h>

#include <chrono>
#include <cstdint>

namespace d2l {

// Nanoseconds since an unspecified start; the same clock on every thread.
inline std::int64_t NowNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Processor time in seconds. clock: CLOCK_THREAD_CPUTIME_ID, of the calling
// thread; CLOCK_PROCESS_CPUTIME_ID, of all threads, including ended ones.
inline double CpuSeconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}
inline double ThreadSeconds() { return CpuSeconds(CLOCK_THREAD_CPUTIME_ID); }

// Not thread-safe; cheap to make one per measurement.
class Timer {
 public:
  Timer() : start_(NowNanos()) {}

  void Restart() { start_ = NowNanos(); }
  std::int64_t Nanos() const { return NowNanos() - start_; }
  double Seconds() const { return 1e-9 * static_cast<double>(Nanos()); }

 private:
  std::int64_t start_;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_TIMER_H_
