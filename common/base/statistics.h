// Statistics of repeated measurements: the median and its confidence interval.
//
//   Summary s = Summarize({1.02, 0.98, 1.71, 1.00, 0.99, 1.01, 1.00});
//   s.median;        // 1.00
//   s.low, s.high;   // 0.98, 1.71: the median lies between them
//   s.coverage;      // with this probability, 0.984
//
// Run times have long tails (another process, a page fault), so a mean and a
// standard deviation say little. The median and its interval assume nothing
// about the distribution, only that the samples are independent: the interval
// runs from the k-th smallest to the k-th largest sample, which miss the true
// median with probability 2 P(X < k), X binomial with n trials of 1/2 (H. A.
// David and H. N. Nagaraja, Order Statistics, 3rd ed., section 7.1; J.-Y.
// Le Boudec, Performance Evaluation of Computer and Communication Systems,
// section 2.2). k is the largest that keeps coverage >= kCoverage:
//
//   n         1     2     3     4      5      6      8      9      20
//   k         1     1     1     1      1      1      1      2      6
//   coverage  0     0.50  0.75  0.875  0.938  0.969  0.992  0.961  0.959
//
// Fewer than six samples cannot reach kCoverage; their interval runs from the
// smallest to the largest, with a lower `coverage`.
//
// A Summary is a value. Summarize is thread-safe; it throws
// std::invalid_argument for no samples, NaN and infinities.

#ifndef D2L_COMMON_BASE_STATISTICS_H_
#define D2L_COMMON_BASE_STATISTICS_H_

#include <cstdint>
#include <vector>

namespace d2l {

inline constexpr double kCoverage = 0.95;

struct Summary {
  std::int64_t count = 0;
  double median = 0;  // of an even number: halfway between the middle two
  double low = 0;
  double high = 0;
  double coverage = 0;  // probability that [low, high] holds the median
  double min = 0;
};

Summary Summarize(std::vector<double> samples);

// A number that is known, not sampled: its interval is the number itself.
Summary Exactly(double value);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_STATISTICS_H_
