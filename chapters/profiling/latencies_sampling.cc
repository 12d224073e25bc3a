#include "chapters/profiling/latencies_sampling.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/timer.h"

namespace d2l {
namespace {

// Fewer cannot decide anything (statistics.h).
constexpr std::size_t kFewestSamples = 6;

}  // namespace

Measurement NotMeasured(const std::string& why_not) {
  Measurement measurement;
  measurement.why_not = why_not;
  return measurement;
}

std::vector<double> SampleNanos(
    const Budget& budget,
    const std::function<std::int64_t(std::int64_t n)>& nanos_of,
    std::int64_t max_batch) {
  const Timer timer;
  // Finding the size of a batch takes about as long as two of them.
  const double target = 1e9 * std::min(budget.seconds / (budget.samples + 2),
                                       kLongestBatchSeconds);
  std::int64_t n = 1;
  double batch = static_cast<double>(nanos_of(n));
  while (batch < target / 2 && n < max_batch) {
    // A first batch is slow, so the step to the next one is bounded.
    const double factor = std::clamp(target / std::max(batch, 1.0), 2.0, 10.0);
    const double next = static_cast<double>(n) * factor;
    n = next < static_cast<double>(max_batch) ? static_cast<std::int64_t>(next)
                                              : max_batch;
    batch = static_cast<double>(nanos_of(n));
  }
  std::vector<double> samples;
  while (samples.size() < static_cast<std::size_t>(budget.samples)) {
    const bool late = timer.Seconds() > 1.5 * budget.seconds;
    if (late && samples.size() >= kFewestSamples) break;
    samples.push_back(static_cast<double>(nanos_of(n)) /
                      static_cast<double>(n));
  }
  return samples;
}

}  // namespace d2l
