#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "chapters/profiling/latencies/measure.h"
#include "common/base/console/language.h"
#include "common/base/statistics.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

// More than any predictor remembers, and few enough to stay in the L2 cache.
constexpr std::size_t kBranches = std::size_t{1} << 18;

// Samples of one branch, taken where the byte is not 0, round and round.
std::vector<double> SampleBranches(const std::vector<std::uint8_t>& taken,
                                   const Budget& budget) {
  std::size_t at = 0;
  return SampleBatches(budget, [&](std::int64_t n) {
    // Locals stay in registers; captured variables may not.
    std::int64_t ones = 0;
    std::int64_t zeros = 0;
    const Timer timer;
    for (std::int64_t i = 0; i < n; ++i) {
      at = (at + 1) % kBranches;
      // Without the asm statements the compiler would add without a branch.
      if (taken[at] != 0) {
        asm volatile("" : "+r"(ones));
        ++ones;
      } else {
        asm volatile("" : "+r"(zeros));
        ++zeros;
      }
    }
    return timer.Nanos();
  });
}

}  // namespace

Measurement MeasureAddition(const Budget& budget) {
  // The compiler does not know the value, so it cannot fold the additions.
  volatile double one = 1;
  std::vector<double> samples = SampleBatches(budget, [&](std::int64_t n) {
    const double step = one;
    double sum = 0;
    const Timer timer;
    for (std::int64_t i = 0; i < n; ++i) sum += step;
    const std::int64_t nanos = timer.Nanos();
    KeepValue(sum);
    return nanos;
  });
  return {std::move(samples),
          Say("additions of doubles, each to the sum that the last one gave.")};
}

Measurement MeasureMispredict(const Budget& budget) {
  std::vector<std::uint8_t> random(kBranches);
  std::mt19937 generator(1);
  for (std::uint8_t& taken : random) taken = (generator() >> 16) & 1;
  // The same branches in an order that is easy to predict.
  std::vector<std::uint8_t> sorted = random;
  std::sort(sorted.begin(), sorted.end());

  Budget half = budget;
  half.seconds /= 2;
  const double predicted = Summarize(SampleBranches(sorted, half)).median;
  std::vector<double> samples = SampleBranches(random, half);
  for (double& seconds : samples) {
    // No predictor guesses more than half of random branches.
    seconds = (seconds - predicted) / 0.5;
    if (seconds <= 0) {
      return NotMeasured(
          Say("random branches took no longer than sorted ones in a sample."));
    }
  }
  return {
      std::move(samples),
      Say("branches in random order, less the time of the same ones sorted, "
          "for each of the half that cannot be predicted.")};
}

Measurement MeasureMutex(const Budget& budget) {
  std::mutex mutex;
  return {SampleEach(budget,
                     [&] {
                       mutex.lock();
                       mutex.unlock();
                     }),
          Say("std::mutex, locked and unlocked; no other thread wants it.")};
}

}  // namespace d2l
