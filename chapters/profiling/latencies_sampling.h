// How every latency of this chapter is sampled: batches of one operation, each
// long enough for the clock, and so short that other processes interrupt few of
// them; the median then is that of the others.
//
//   const std::vector<double> nanos = SampleNanos(budget, [&](std::int64_t n) {
//     const Timer timer;
//     for (std::int64_t i = 0; i < n; ++i) counter.fetch_add(1);
//     return timer.Nanos();
//   });
//
// A sample is the time of a batch by the number of operations in it. All are
// values and pure functions, but for what they call.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_SAMPLING_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_SAMPLING_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace d2l {

// How long one measurement may take, about, and of how many samples it is.
struct Budget {
  double seconds = 0.1;
  int samples = 99;
};

// A batch takes no longer, unless one operation does. The system lets a process
// run for milliseconds at a time.
inline constexpr double kLongestBatchSeconds = 200e-6;

// What one measurement came to: samples, or the reason why there are none.
struct Measurement {
  std::vector<double> nanos;  // of one operation
  std::string how;            // how it was measured
  std::string why_not;        // "" if it was measured
};

Measurement NotMeasured(const std::string& why_not);

// As many samples as the budget says. If an operation takes so long that they
// do not fit, fewer, but six, with which the median's interval is worth
// something (statistics.h). nanos_of(n) does n operations and returns how long
// they took; n grows to what the budget allows, but not beyond max_batch, and
// the batches that find it out are the warm-up.
std::vector<double> SampleNanos(
    const Budget& budget,
    const std::function<std::int64_t(std::int64_t n)>& nanos_of,
    std::int64_t max_batch = std::numeric_limits<std::int64_t>::max());

// Makes the compiler believe that the value is used, so that what computes it
// is not removed.
template <typename T>
inline void KeepValue(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_SAMPLING_H_
