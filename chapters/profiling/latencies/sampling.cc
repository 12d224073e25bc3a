#include "chapters/profiling/latencies/sampling.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace d2l {
namespace {

constexpr std::size_t kFewestSamples = 6;
// A batch takes at most this long, unless one operation takes longer. The
// system lets a process run for milliseconds at a time.
constexpr double kLongestBatchSeconds = 200e-6;

}  // namespace

std::vector<double> SampleBatches(
    const Budget& budget,
    const std::function<std::int64_t(std::int64_t n)>& nanos_of) {
  const Timer timer;
  // Finding the size of a batch takes about as long as two of them.
  const double target = 1e9 * std::min(budget.seconds / (budget.samples + 2),
                                       kLongestBatchSeconds);
  std::int64_t n = 1;
  double batch = static_cast<double>(nanos_of(n));
  while (batch < target / 2) {
    // A first batch is slow, so the step to the next one is bounded.
    const double factor = std::clamp(target / std::max(batch, 1.0), 2.0, 10.0);
    n = static_cast<std::int64_t>(static_cast<double>(n) * factor);
    batch = static_cast<double>(nanos_of(n));
  }
  std::vector<double> samples;
  while (samples.size() < static_cast<std::size_t>(budget.samples)) {
    const bool late = timer.Seconds() > 1.5 * budget.seconds;
    if (late && samples.size() >= kFewestSamples) break;
    samples.push_back(1e-9 * static_cast<double>(nanos_of(n)) /
                      static_cast<double>(n));
  }
  return samples;
}

}  // namespace d2l
