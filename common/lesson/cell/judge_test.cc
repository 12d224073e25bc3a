// The judge on synthetic data, where the truth is known.

#include "common/lesson/cell/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/console/command_line.h"
#include "common/base/statistics.h"

namespace d2l {
namespace {

Figure Make(const std::string& label, const std::vector<double>& samples,
            const std::string& unit = "s") {
  return {label, "", "cpu:0, virtual", unit, Summarize(samples)};
}

// Times around `typical`, with a long tail, `spread` wide.
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
  const Judgement j = Less(Make("one", kOnes), Make("two", kTwos), 1.3);
  EXPECT_EQ(j.verdict, Verdict::kHolds);
  EXPECT_EQ(j.number, "2.00x");
  EXPECT_EQ(j.evidence, "needs 1.30x or more; 95 %: 1.97-2.03");
  EXPECT_EQ(j.reason, "");
  EXPECT_FALSE(j.no_difference);
}

TEST(Less, ReversedFails) {
  const Judgement j = Less(Make("two", kTwos), Make("one", kOnes));
  EXPECT_EQ(j.verdict, Verdict::kFails);
  EXPECT_EQ(j.number, "0.500x");
}

TEST(Less, NoDifferenceIsNamed) {
  const Judgement j = Less(Make("a", kOnes), Make("b", kOnes), 1.3);
  EXPECT_EQ(j.verdict, Verdict::kFails);
  EXPECT_EQ(j.number, "1.00x");
  EXPECT_TRUE(j.no_difference);
  EXPECT_FALSE(Less(Make("a", kOnes), Make("w", kWide), 9).no_difference);
}

// The intervals of the two overlap; in every repeat the second takes twice as
// long, or equally long.
TEST(Less, ComparesRepeatByRepeat) {
  const Figure drifts = d2l::Sampled("a", "", "s", {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Figure twice =
      d2l::Sampled("b", "", "s", {2, 4, 6, 8, 10, 12, 14, 16, 18});
  const Judgement j = Less(drifts, twice, 1.9);
  EXPECT_EQ(j.verdict, Verdict::kHolds);
  EXPECT_EQ(j.evidence, "needs 1.90x or more");
  EXPECT_EQ(Less(drifts, drifts, 1.1).verdict, Verdict::kFails);
  EXPECT_TRUE(Less(drifts, drifts, 1.1).no_difference);
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

TEST(Less, ZerosAreRefused) {
  const Figure zero = Make("zero", std::vector<double>(9, 0.0));
  EXPECT_THROW(Less(zero, Make("one", kOnes)), std::invalid_argument);
  EXPECT_THROW(Less(Make("one", kOnes), zero), std::invalid_argument);
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
  const Judgement close = Less(one, two, 2.0);
  EXPECT_EQ(close.verdict, Verdict::kInconclusive);
  EXPECT_EQ(close.reason, "The repeats differ too much to decide.");
  EXPECT_EQ(Less(one, two, 3).verdict, Verdict::kFails);
  EXPECT_EQ(Less(two, one, 1.3).verdict, Verdict::kFails);
  EXPECT_THROW(Less(one, two, 0.5), std::invalid_argument);
}

TEST(Less, UnitsMustAgree) {
  EXPECT_THROW(Less(Make("a", kOnes, "s"), Make("b", kTwos, "B")),
               std::invalid_argument);
}

// Two samples of the same distribution differ in at most about one case in
// twenty, in either direction; and a true difference is rarely reversed.
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

// A figure of which other programs disturbed nearly every repeat.
Figure Disturbed(const std::vector<double>& samples) {
  Figure figure = d2l::Sampled("a", "", "s", samples);
  figure.disturbed = true;
  return figure;
}

TEST(BesideLoad, ADisturbedFigureDecidesNothing) {
  const Figure quiet = d2l::Sampled("quiet", "", "s", kOnes);
  const Figure slow = Disturbed(std::vector<double>(9, 10));
  for (const Judgement& j :
       {Less(quiet, slow), Less(slow, quiet), AboutEqual(quiet, slow, 1.1),
        Above(slow, 1), Below(slow, 1), SureFrom("n", {{9, slow}}, 1),
        Above(RatioPerRepeat("r", slow, quiet), 1),
        Less(quiet, Disturbed({10, 10, 10, 10, 10, 10, 10, 10}))}) {
    EXPECT_EQ(j.verdict, Verdict::kInconclusive) << j.number;
    EXPECT_TRUE(j.disturbed);
    EXPECT_FALSE(j.close);
    EXPECT_EQ(j.reason, "Other programs disturbed too many of the repeats.");
  }
  EXPECT_FALSE(Less(quiet, quiet, 1.3).disturbed);
}

TEST(BesideLoad, AControlThatIsOpenLeavesTheClaimOpen) {
  const Judgement holds = Above(Known("gain", "x", 2), 1.3);
  const Judgement fails = Above(Known("gain", "x", 1), 1.3);
  const Judgement open = Above(Disturbed(kTwos), 1.3);
  for (const Judgement& j :
       {Both(holds, open, "control"), Both(open, holds, "control"),
        Given(open, holds, "control"), Given(open, fails, "control"),
        Given(holds, open, "control")}) {
    EXPECT_EQ(j.verdict, Verdict::kInconclusive);
    EXPECT_TRUE(j.disturbed);
  }
  // It fails whatever the control is.
  EXPECT_EQ(Both(fails, open, "control").verdict, Verdict::kFails);
  EXPECT_FALSE(Both(fails, open, "control").disturbed);
  // There is nothing to see, whatever the claim is.
  EXPECT_FALSE(Given(fails, open, "control").disturbed);
}

// A verdict is close if a number a fifth off would have another one.
TEST(Judgement, IsCloseNearWhatItNeeds) {
  const auto is_close = [](double gain) {
    return Above(Known("gain", "x", gain), 1.3).close;
  };
  EXPECT_FALSE(is_close(1.0));
  EXPECT_TRUE(is_close(1.2));
  EXPECT_TRUE(is_close(1.4));
  EXPECT_FALSE(is_close(1.7));
  EXPECT_TRUE(Less(Make("one", kOnes), Make("two", kTwos), 2).close)
      << "the repeats leave it open";
  EXPECT_TRUE(AboutEqual(Known("a", "s", 1.4), Known("b", "s", 1), 1.3).close);
  EXPECT_FALSE(AboutEqual(Known("a", "s", 9), Known("b", "s", 1), 1.3).close);
}

// Both intervals are in the evidence; whose the second is stands before it.
TEST(Both, NamesWhoseIntervalIsWhose) {
  const Figure one = Make("one", kOnes), two = Make("two", kTwos);
  const Figure wide = Make("wide", kWide);
  const auto claim = [&] {
    return Both(Less(one, two, 1.3), Less(wide, one, 1.3),
                "without Synchronize");
  };
  EXPECT_EQ(claim().evidence,
            "needs 1.30x or more; 95 %: 1.97-2.03; without Synchronize: 0.714x "
            "(needs 1.30x or more; 95 %: 0.330-1.68)");
  EXPECT_EQ(
      claim().reason,
      "The control, \"without Synchronize\", is INCONCLUSIVE. The repeats "
      "differ too much to decide.");
  EXPECT_FALSE(claim().disturbed);
  ASSERT_TRUE(SetLanguage("zh").ok());
  const std::string chinese = claim().reason;
  ASSERT_TRUE(SetLanguage("en").ok());
  EXPECT_EQ(chinese,
            "对照“不用Synchronize时”无法判断。各次重复相差太大，无法判断。");
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

TEST(AboutEqual, ComparesRepeatByRepeat) {
  const Figure drifts = d2l::Sampled("a", "", "s", {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Judgement j = AboutEqual(drifts, drifts, 1.3);
  EXPECT_EQ(j.verdict, Verdict::kHolds);
  EXPECT_EQ(j.number, "1.00x");
  EXPECT_EQ(j.evidence, "needs to be within 1.30x");
}

TEST(Above, JudgesOneFigure) {
  const Figure gain =
      d2l::Sampled("gain", "", "%", {40, 43, 41, 44, 43, 45, 42, 43, 44});
  const Judgement j = Above(gain, 10);
  EXPECT_EQ(j.verdict, Verdict::kHolds);
  EXPECT_EQ(j.number, "43 %");
  EXPECT_EQ(j.evidence, "needs 10 % or more; 95 %: 41-44");
  EXPECT_EQ(Above(gain, 42).verdict, Verdict::kInconclusive);
  EXPECT_EQ(Above(gain, 60).verdict, Verdict::kFails);
  EXPECT_EQ(Below(gain, 60).verdict, Verdict::kHolds);
  EXPECT_EQ(Below(gain, 60).evidence, "needs less than 60 %; 95 %: 41-44");
  EXPECT_EQ(Below(gain, 10).verdict, Verdict::kFails);
  // A known figure needs no interval.
  EXPECT_EQ(Above(Known("k", "x", 2), 1.1).verdict, Verdict::kHolds);
  const Figure negative =
      d2l::Sampled("gain", "", "%", {-4, -3, -4, -5, -2, -4});
  EXPECT_EQ(Above(negative, 1).evidence, "needs 1 % or more; 95 %: -5 to -2");
}

TEST(Both, NeedsTheControl) {
  const Judgement holds = Above(Known("claim", "x", 2), 1.5);
  const Judgement fails = Above(Known("control", "x", 1.2), 1.5);
  Judgement unsure = holds;
  unsure.verdict = Verdict::kInconclusive;
  EXPECT_EQ(Both(holds, holds, "at rest").verdict, Verdict::kHolds);
  EXPECT_EQ(Both(holds, fails, "at rest").verdict, Verdict::kFails);
  EXPECT_EQ(Both(holds, fails, "at rest").reason,
            "The control shows the same.");
  EXPECT_EQ(Both(holds, unsure, "at rest").verdict, Verdict::kInconclusive);
  EXPECT_EQ(Both(fails, holds, "at rest").verdict, Verdict::kFails);
  EXPECT_EQ(Both(unsure, holds, "at rest").verdict, Verdict::kInconclusive);
  EXPECT_EQ(Both(holds, fails, "at rest").number, "2.00x");
  EXPECT_EQ(Both(holds, fails, "at rest").evidence,
            "needs 1.50x or more; at rest: 1.20x (needs 1.50x or more)");
}

TEST(Given, DecidesNothingWithoutTheControl) {
  const Judgement holds = Above(Known("claim", "x", 2), 1.5);
  const Judgement fails = Above(Known("control", "x", 1.2), 1.5);
  EXPECT_EQ(Given(holds, holds, "at rest").verdict, Verdict::kHolds);
  EXPECT_EQ(Given(holds, fails, "at rest").verdict, Verdict::kFails);
  EXPECT_EQ(Given(fails, holds, "at rest").verdict, Verdict::kInconclusive);
  EXPECT_EQ(Given(fails, fails, "at rest").verdict, Verdict::kInconclusive);
  EXPECT_EQ(Given(fails, holds, "at rest").number, "2.00x");
  EXPECT_EQ(Given(fails, holds, "at rest").reason,
            "The control shows nothing to compare with.");
}

TEST(Counted, IsExact) {
  const Judgement j = Counted(false, "31 dependencies", "3 of 31");
  EXPECT_EQ(j.verdict, Verdict::kFails);
  EXPECT_EQ(j.number, "3 of 31");
  EXPECT_EQ(j.evidence, "31 dependencies");
  EXPECT_FALSE(j.disturbed);
}

TEST(SureFrom, IsTheSmallestSizeFromWhichAllAreSure) {
  const auto at = [](double size, double ratio) {
    return SweepPoint{size, Known("r", "x", ratio)};
  };
  // 100 is above the bound, but 200 is not.
  const Judgement j = SureFrom(
      "n", {at(3, 0.1), at(100, 1.5), at(200, 1), at(400, 1.2), at(800, 2)},
      1.1);
  EXPECT_EQ(j.verdict, Verdict::kHolds);
  EXPECT_EQ(j.number, "n = 400");
  EXPECT_EQ(j.evidence, "n = 800: 2.00x, needs 1.10x or more");
  EXPECT_EQ(SureFrom("n", {at(3, 2), at(9, 3)}, 1.1).number, "n = 3");
  const Judgement nowhere = SureFrom("n", {at(3, 2), at(9, 1)}, 1.1);
  EXPECT_EQ(nowhere.verdict, Verdict::kFails);
  EXPECT_EQ(nowhere.number, "no measured size");
  EXPECT_FALSE(nowhere.no_difference);
  EXPECT_EQ(SureFrom("n", {{9, Make("wide", kWide, "x")}}, 1.1).verdict,
            Verdict::kInconclusive);
  EXPECT_THROW(SureFrom("n", {}, 1.1), std::invalid_argument);
}

TEST(Figure, NamesWhereItWasMeasured) {
  Figure figure = {"10 products", "enqueue", "cuda:1, logical", "s", {}};
  EXPECT_EQ(figure.Name(), "10 products, enqueue (cuda:1, logical)");
  figure.place = Place{"ones", 1 << 25};
  EXPECT_EQ(figure.Name(),
            "10 products, ones = 33554432, enqueue (cuda:1, logical)");
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

}  // namespace
}  // namespace d2l
