#include "common/base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace d2l {
namespace {

std::vector<double> OneTo(int n) {
  std::vector<double> samples;
  // Backwards, so that nothing works only for sorted samples.
  for (int i = n; i >= 1; --i) samples.push_back(i);
  return samples;
}

TEST(Summarize, OneSampleIsItsOwnMedianAndCoversNothing) {
  const Summary s = Summarize({3.5});
  EXPECT_EQ(s.count, 1);
  EXPECT_EQ(s.median, 3.5);
  EXPECT_EQ(s.low, 3.5);
  EXPECT_EQ(s.high, 3.5);
  EXPECT_EQ(s.min, 3.5);
  EXPECT_EQ(s.coverage, 0);
}

TEST(Summarize, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(Summarize({9, 1, 5}).median, 5);
  EXPECT_EQ(Summarize({9, 1, 5, 6}).median, 5.5);
  EXPECT_EQ(Summarize({2, 1}).median, 1.5);
}

// Ranks and coverage computed by hand from binomial coefficients.
TEST(Summarize, IntervalIsThatOfTheOrderStatistics) {
  struct Case {
    int n;
    double low, high, coverage;
  };
  for (const Case& c : {
           Case{2, 1, 2, 0.5},
           Case{3, 1, 3, 0.75},
           Case{5, 1, 5, 1 - 2.0 / 32},
           Case{6, 1, 6, 1 - 2.0 / 64},
           Case{8, 1, 8, 1 - 2.0 / 256},
           Case{9, 2, 8, 1 - 2.0 * (1 + 9) / 512},
           Case{11, 2, 10, 1 - 2.0 * (1 + 11) / 2048},
           Case{12, 3, 10, 1 - 2.0 * (1 + 12 + 66) / 4096},
           Case{20, 6, 15,
                1 - 2.0 * (1 + 20 + 190 + 1140 + 4845 + 15504) / 1048576},
       }) {
    const Summary s = Summarize(OneTo(c.n));
    EXPECT_EQ(s.low, c.low) << c.n;
    EXPECT_EQ(s.high, c.high) << c.n;
    EXPECT_NEAR(s.coverage, c.coverage, 1e-12) << c.n;
  }
}

TEST(Summarize, CoverageHoldsFromSixSamplesOn) {
  for (int n = 1; n <= 200; ++n) {
    const Summary s = Summarize(OneTo(n));
    EXPECT_EQ(s.coverage >= kCoverage, n >= 6) << n;
    EXPECT_LE(s.low, s.median);
    EXPECT_LE(s.median, s.high);
    EXPECT_EQ(s.low - 1, n - s.high) << "not symmetric for " << n;
  }
}

TEST(Summarize, ManySamplesDoNotUnderflow) {
  const int n = 100000;
  const Summary s = Summarize(OneTo(n));
  EXPECT_GE(s.coverage, kCoverage);
  EXPECT_LT(s.coverage, kCoverage + 0.005);
  // The normal approximation: 1.96 standard deviations of sqrt(n) / 2.
  EXPECT_NEAR(s.high - s.low, 1.96 * std::sqrt(n), 3);
}

// The promise itself, on a skewed distribution whose median is known.
TEST(Summarize, IntervalHoldsTheTrueMedianAsOftenAsPromised) {
  std::mt19937 random(7);
  std::exponential_distribution<double> exponential;
  const int trials = 4000;
  int held = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> samples(9);
    for (double& x : samples) x = exponential(random);
    const Summary s = Summarize(samples);
    if (s.low <= std::log(2.0) && std::log(2.0) <= s.high) ++held;
  }
  // 0.961, give or take four standard deviations.
  EXPECT_NEAR(static_cast<double>(held) / trials, 0.961, 0.0125);
}

TEST(Summarize, ConstantSamplesHaveAnIntervalOfNoWidth) {
  const Summary s = Summarize(std::vector<double>(10, 4.25));
  EXPECT_EQ(s.median, 4.25);
  EXPECT_EQ(s.low, 4.25);
  EXPECT_EQ(s.high, 4.25);
}

TEST(Summarize, OneOutlierDoesNotMoveNineSamples) {
  const Summary s = Summarize({1, 1, 1, 1, 1000, 1, 1, 1, 1});
  EXPECT_EQ(s.median, 1);
  EXPECT_EQ(s.high, 1);
}

TEST(Summarize, HugeSamplesDoNotOverflow) {
  const double huge = std::numeric_limits<double>::max();
  EXPECT_EQ(Summarize({huge, huge}).median, huge);
}

TEST(Summarize, RejectsWhatIsNotANumber) {
  EXPECT_THROW(Summarize({}), std::invalid_argument);
  EXPECT_THROW(Summarize({1, std::nan("")}), std::invalid_argument);
  EXPECT_THROW(Summarize({std::numeric_limits<double>::infinity()}),
               std::invalid_argument);
}

TEST(Exactly, IsKnownForCertain) {
  const Summary s = Exactly(1.5);
  EXPECT_EQ(s.median, 1.5);
  EXPECT_EQ(s.low, 1.5);
  EXPECT_EQ(s.high, 1.5);
  EXPECT_EQ(s.coverage, 1);
}

}  // namespace
}  // namespace d2l
