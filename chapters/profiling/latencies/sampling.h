// Samples of the time that one operation takes.
//
//   std::atomic<int> counter{0};
//   const std::vector<double> seconds =
//       SampleEach(Budget(), [&] { counter.fetch_add(1); });
//
// A sample is the time of a batch divided by the number of operations in it. A
// batch is long enough for the clock, and so short that other processes
// interrupt few of the batches: the median is that of undisturbed ones.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_SAMPLING_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_SAMPLING_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/timer.h"

namespace d2l {

// About how long one measurement may take, and the number of its samples.
struct Budget {
  double seconds = 0.1;
  int samples = 99;
};

// Samples, or the reason why there are none.
struct Measurement {
  std::vector<double> seconds;  // of one operation
  std::string why_not = "";     // a sentence that begins with a small letter
};

inline Measurement NotMeasured(const std::string& why_not) {
  return {{}, why_not};
}

// As many samples as the budget says, or fewer, but at least six, if an
// operation takes too long for them: the interval of the median needs six
// (statistics.h). nanos_of(n) does n operations and returns how long they took.
// n grows to what the budget allows; the batches that find it are the warm-up.
std::vector<double> SampleBatches(
    const Budget& budget,
    const std::function<std::int64_t(std::int64_t n)>& nanos_of);

// Samples of an operation that is called once at a time.
template <typename Operation>
std::vector<double> SampleEach(const Budget& budget, Operation operation) {
  return SampleBatches(budget, [&](std::int64_t n) {
    const Timer timer;
    for (std::int64_t i = 0; i < n; ++i) operation();
    return timer.Nanos();
  });
}

// Makes the compiler believe that the value is used, so that it does not remove
// the code that computes it.
template <typename T>
inline void KeepValue(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_SAMPLING_H_
