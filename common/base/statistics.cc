#include "common/base/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace d2l {
namespace {

// The rank of the interval's ends, from 1, and what the interval covers.
struct Rank {
  std::int64_t k;
  double coverage;
};

Rank IntervalRank(std::int64_t n) {
  // In logarithms: 2^-n underflows from n = 1075 on.
  const double log_all = static_cast<double>(n) * std::log(2.0);
  double log_ways = 0;  // of choosing i out of n
  double below = 0;     // P(X <= i)
  Rank best{1, 0};
  for (std::int64_t i = 0; 2 * (i + 1) <= n + 1; ++i) {
    below += std::exp(log_ways - log_all);
    const double coverage = std::max(0.0, 1 - 2 * below);
    if (i > 0 && coverage < kCoverage) break;
    best = {i + 1, coverage};
    log_ways += std::log(static_cast<double>(n - i)) -
                std::log(static_cast<double>(i + 1));
  }
  return best;
}

}  // namespace

Summary Summarize(std::vector<double> samples) {
  if (samples.empty()) {
    throw std::invalid_argument("Summarize: there are no samples");
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!std::isfinite(samples[i])) {
      throw std::invalid_argument("Summarize: sample " + std::to_string(i) +
                                  " is " + std::to_string(samples[i]));
    }
  }
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  const Rank rank = IntervalRank(static_cast<std::int64_t>(n));
  const std::size_t k = static_cast<std::size_t>(rank.k);

  Summary summary;
  summary.count = static_cast<std::int64_t>(n);
  // Halves are added, since the sum of two large samples might overflow. The
  // middle one of an odd number is taken as it is.
  summary.median =
      n % 2 == 1 ? samples[n / 2] : samples[n / 2 - 1] / 2 + samples[n / 2] / 2;
  summary.low = samples[k - 1];
  summary.high = samples[n - k];
  summary.coverage = rank.coverage;
  summary.min = samples.front();
  return summary;
}

Summary Exactly(double value) {
  Summary summary = Summarize({value});
  summary.coverage = 1;
  return summary;
}

}  // namespace d2l
