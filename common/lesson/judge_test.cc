// The judge on synthetic data, where the truth is known.

#include "common/lesson/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/statistics.h"

namespace d2l {
namespace {

Figure Make(const std::string& label, const std::vector<double>& samples,
            const std::string& unit = "s") {
  return {label, "", "cpu:0, virtual", unit, Summarize(samples)};
}

// Run times around `typical`, with a long tail, `spread` wide.
Figure Sampled(double typical, double spread, int count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    samples.push_back(typical * std::exp(spread * normal(random)));
  }
  return Make("sampled", samples);
}

const std::vector<double> kOnes = {1.00, 1.01, 0.99, 1.02, 1.00,
                                   0.98, 1.01, 1.00, 0.99};
const std::vector<double> kTwos = {2.00, 2.01, 1.99, 2.02, 2.00,
                                   1.98, 2.01, 2.00, 1.99};
const std::vector<double> kWide = {0.5, 4.0, 0.7, 3.0, 1.0, 2.5, 0.6, 1.9, 1.4};

TEST(Less, ClearDifferenceHolds) {
  const Judgement j = Less(Make("one", kOnes), Make("two", kTwos));
  EXPECT_EQ(j.verdict, Verdict::kHolds);
  EXPECT_NE(j.reason.find("one (cpu:0, virtual): 1.00 s [0.990, 1.01]"),
            std::string::npos)
      << j.reason;
  EXPECT_NE(j.reason.find("two (cpu:0, virtual): 2.00 s [1.99, 2.01]"),
            std::string::npos)
      << j.reason;
  EXPECT_NE(j.reason.find("2.00x apart"), std::string::npos) << j.reason;
}

TEST(Less, ReversedFails) {
  const Judgement j = Less(Make("two", kTwos), Make("one", kOnes));
  EXPECT_EQ(j.verdict, Verdict::kFails);
  EXPECT_NE(j.reason.find("first is more"), std::string::npos) << j.reason;
}

TEST(Less, NoisyIsInconclusive) {
  EXPECT_EQ(Less(Make("one", kOnes), Make("wide", kWide)).verdict,
            Verdict::kInconclusive);
  EXPECT_EQ(Less(Make("wide", kWide), Make("one", kOnes)).verdict,
            Verdict::kInconclusive);
}

TEST(Less, EqualConstantsAreInconclusive) {
  const Figure a = Make("a", std::vector<double>(9, 1.0));
  EXPECT_EQ(Less(a, a).verdict, Verdict::kInconclusive);
}

TEST(Less, DifferentConstantsDecide) {
  const Figure a = Make("a", std::vector<double>(9, 1.0));
  const Figure b = Make("b", std::vector<double>(9, 1.5));
  EXPECT_EQ(Less(a, b).verdict, Verdict::kHolds);
  EXPECT_EQ(Less(b, a).verdict, Verdict::kFails);
}

TEST(Less, ZerosDoNotDivide) {
  const Figure zero = Make("zero", std::vector<double>(9, 0.0));
  EXPECT_EQ(Less(zero, Make("one", kOnes)).verdict, Verdict::kHolds);
  EXPECT_EQ(Less(zero, zero).verdict, Verdict::kInconclusive);
}

TEST(Less, FewSamplesDecideNothing) {
  const Judgement one = Less(Make("a", {1.0}), Make("b", kTwos));
  EXPECT_EQ(one.verdict, Verdict::kInconclusive);
  EXPECT_NE(one.reason.find("spread of 1 sample is not"), std::string::npos)
      << one.reason;
  EXPECT_EQ(
      Less(Make("a", kOnes), Make("b", {9.0, 9.0, 9.0, 9.0, 9.0})).verdict,
      Verdict::kInconclusive);
  EXPECT_EQ(
      Less(Make("a", kOnes), Make("b", {9.0, 9.0, 9.0, 9.0, 9.0, 9.0})).verdict,
      Verdict::kHolds);
}

TEST(Less, ByAFactor) {
  const Figure one = Make("one", kOnes);
  const Figure two = Make("two", kTwos);
  EXPECT_EQ(Less(one, two, 1.9).verdict, Verdict::kHolds);
  EXPECT_EQ(Less(one, two, 2.0).verdict, Verdict::kInconclusive);
  const Judgement three = Less(one, two, 3);
  EXPECT_EQ(three.verdict, Verdict::kFails);
  EXPECT_NE(three.reason.find("2.00x apart. The intervals rule out such a "
                              "difference (3.00x is asked for)"),
            std::string::npos)
      << three.reason;
  EXPECT_EQ(Less(two, one, 1.3).verdict, Verdict::kFails);
  EXPECT_THROW(Less(one, two, 0.5), std::invalid_argument);
}

TEST(Less, UnitsMustAgree) {
  EXPECT_THROW(Less(Make("a", kOnes, "s"), Make("b", kTwos, "B")),
               std::invalid_argument);
}

// Two samples of the same distribution separate in at most about one case in
// twenty, whichever way; and a true difference is seldom turned round.
TEST(Less, IsSeldomWrong) {
  const int trials = 2000;
  int decided = 0;
  int reversed = 0;
  for (int i = 0; i < trials; ++i) {
    const Figure a = Sampled(1.0, 0.2, 9, 2 * i);
    const Figure same = Sampled(1.0, 0.2, 9, 2 * i + 1);
    const Figure more = Sampled(1.3, 0.2, 9, 2 * i + 1);
    if (Less(a, same).verdict != Verdict::kInconclusive) ++decided;
    if (Less(a, more).verdict == Verdict::kFails) ++reversed;
  }
  EXPECT_LT(decided, trials / 20);
  EXPECT_EQ(reversed, 0);
}

TEST(AboutEqual, HoldsFailsOrCannotTell) {
  const Figure one = Make("one", kOnes);
  EXPECT_EQ(AboutEqual(one, one, 1.1).verdict, Verdict::kHolds);
  EXPECT_EQ(AboutEqual(one, Make("two", kTwos), 1.1).verdict, Verdict::kFails);
  EXPECT_EQ(AboutEqual(Make("two", kTwos), one, 1.1).verdict, Verdict::kFails);
  EXPECT_EQ(AboutEqual(one, Make("two", kTwos), 2.5).verdict, Verdict::kHolds);
  EXPECT_EQ(AboutEqual(one, Make("two", kTwos), 2.0).verdict,
            Verdict::kInconclusive);
  EXPECT_EQ(AboutEqual(one, Make("wide", kWide), 1.1).verdict,
            Verdict::kInconclusive);
  EXPECT_EQ(AboutEqual(one, Make("b", {1.0}), 1.1).verdict,
            Verdict::kInconclusive);
  const Figure constant = Make("c", std::vector<double>(9, 1.0));
  EXPECT_EQ(AboutEqual(constant, constant, 1.01).verdict, Verdict::kHolds);
  EXPECT_THROW(AboutEqual(one, one, 1.0), std::invalid_argument);
  EXPECT_THROW(AboutEqual(one, one, std::nan("")), std::invalid_argument);
}

TEST(Derived, IntervalsAreAsWideAsTheyCouldBe) {
  const Figure one = Make("one", kOnes);
  const Figure two = Make("two", kTwos);
  const Figure sum = Sum("sum", one, two);
  EXPECT_DOUBLE_EQ(sum.value.median, 3.0);
  EXPECT_DOUBLE_EQ(sum.value.low, 0.99 + 1.99);
  EXPECT_DOUBLE_EQ(sum.value.high, 1.01 + 2.01);
  EXPECT_EQ(sum.unit, "s");
  EXPECT_EQ(sum.Name(), "sum (cpu:0, virtual)");

  const Figure ratio = Ratio("ratio", two, one);
  EXPECT_DOUBLE_EQ(ratio.value.median, 2.0);
  EXPECT_DOUBLE_EQ(ratio.value.low, 1.99 / 1.01);
  EXPECT_DOUBLE_EQ(ratio.value.high, 2.01 / 0.99);
  EXPECT_EQ(ratio.unit, "x");

  const Figure scaled = Scaled("half", two, 0.5);
  EXPECT_DOUBLE_EQ(scaled.value.median, 1.0);
  EXPECT_DOUBLE_EQ(scaled.value.low, 0.995);
}

TEST(Derived, RatioClaims) {
  const Figure speedup =
      Ratio("speed-up", Make("two", kTwos), Make("one", kOnes));
  EXPECT_EQ(Less(Known("bound", "x", 1.5), speedup).verdict, Verdict::kHolds);
  EXPECT_EQ(Less(Known("bound", "x", 2.5), speedup).verdict, Verdict::kFails);
  EXPECT_EQ(Less(Known("bound", "x", 2.0), speedup).verdict,
            Verdict::kInconclusive);
  // A ratio is known no better than what it was made of.
  const Figure thin = Ratio("thin", Make("two", {2.0}), Make("one", kOnes));
  EXPECT_EQ(Less(Known("bound", "x", 1.5), thin).verdict,
            Verdict::kInconclusive);
}

TEST(Derived, RejectsWhatMakesNoSense) {
  const Figure one = Make("one", kOnes);
  const Figure zero = Make("zero", std::vector<double>(9, 0.0));
  EXPECT_THROW(Ratio("r", one, zero), std::invalid_argument);
  EXPECT_THROW(Scaled("s", one, 0), std::invalid_argument);
  EXPECT_THROW(Sum("s", one, Make("b", kOnes, "B")), std::invalid_argument);
}

TEST(Figure, NamesWhereItWasMeasured) {
  const Figure figure = {"10 products", "enqueue", "cuda:1, logical", "s", {}};
  EXPECT_EQ(figure.Name(), "10 products, enqueue (cuda:1, logical)");
  EXPECT_EQ(Known("bound", "s", 1).Name(), "bound");
}

TEST(RatioPerRepeat, IsNarrowWhereBothDriftAlike) {
  Figure a{"a", "", "", "s", {}};
  Figure b{"b", "", "", "s", {}};
  for (int i = 1; i <= 9; ++i) {
    a.samples.push_back(2.0 * i);
    b.samples.push_back(1.0 * i);
  }
  a.value = Summarize(a.samples);
  b.value = Summarize(b.samples);
  const Figure ratio = RatioPerRepeat("r", a, b);
  EXPECT_EQ(ratio.unit, "x");
  EXPECT_DOUBLE_EQ(ratio.value.low, 2);
  EXPECT_DOUBLE_EQ(ratio.value.high, 2);
  EXPECT_EQ(ratio.samples, std::vector<double>(9, 2));
  EXPECT_GT(Ratio("r", a, b).value.high, 3);

  const Figure sum =
      PerRepeat("sum", "s", a, b, [](double x, double y) { return x + y; });
  EXPECT_DOUBLE_EQ(sum.value.median, 15);
  EXPECT_EQ(sum.samples[0], 3);
}

TEST(RatioPerRepeat, NeedsTheSameRepeats) {
  Figure a{"a", "", "", "s", Summarize({1, 2}), {1, 2}};
  Figure b{"b", "", "", "s", Summarize({1}), {1}};
  EXPECT_THROW(RatioPerRepeat("r", a, b), std::invalid_argument);
  EXPECT_THROW(RatioPerRepeat("r", Known("k", "s", 1), Known("k", "s", 1)),
               std::invalid_argument);
  Figure bytes{"c", "", "", "B", Summarize({1, 2}), {1, 2}};
  EXPECT_THROW(RatioPerRepeat("r", a, bytes), std::invalid_argument);
}

TEST(Judgement, NamesTheMediansAlone) {
  const Figure a = Known("a", "s", 0.001);
  const Figure b = Known("b", "s", 2);
  EXPECT_EQ(Less(a, b).figures, "1.00 ms, 2.00 s");
  EXPECT_EQ(AboutEqual(b, a, 1.5).figures, "2.00 s, 1.00 ms");
}

}  // namespace
}  // namespace d2l
