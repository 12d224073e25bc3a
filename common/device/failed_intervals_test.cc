#include "common/device/failed_intervals.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/device/failure.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

FailurePtr MakeFailure(std::uint64_t number) {
  auto failure = std::make_shared<Failure>();
  failure->operation = "relu";
  failure->number = number;
  failure->stream = "cpu:0";
  failure->requested_at =
      SourceLocation("net.cc", static_cast<int>(number) + 1);
  failure->what = "alas";
  return failure;
}

TEST(FailedIntervalsTest, EmptyHasNoFailures) {
  FailedIntervals failed;
  EXPECT_EQ(failed.FailureOf(0), nullptr);
  EXPECT_EQ(failed.FailureOf(FailedIntervals::kOpen - 1), nullptr);
  EXPECT_EQ(failed.open(), nullptr);
}

TEST(FailedIntervalsTest, OpensAndCloses) {
  FailedIntervals failed;
  const FailurePtr failure = MakeFailure(41);
  failed.Open(41, failure);
  ASSERT_NE(failed.open(), nullptr);
  EXPECT_EQ(failed.FailureOf(40), nullptr);
  EXPECT_EQ(failed.FailureOf(41), failure);
  EXPECT_EQ(failed.FailureOf(1'000'000), failure);
  failed.Close(50);
  EXPECT_EQ(failed.open(), nullptr);
  EXPECT_EQ(failed.FailureOf(49), failure);
  EXPECT_EQ(failed.FailureOf(50), nullptr);
}

TEST(FailedIntervalsTest, OpenTakesInWhatFailedBehindIt) {
  FailedIntervals failed;
  const FailurePtr first = MakeFailure(3);
  failed.AddAlone(3, first);
  failed.AddAlone(10, MakeFailure(10));
  failed.AddAlone(12, MakeFailure(12));
  EXPECT_EQ(failed.FailureOf(11), nullptr);
  const FailurePtr late = MakeFailure(7);
  failed.Open(7, late);
  EXPECT_EQ(failed.FailureOf(3), first);
  EXPECT_EQ(failed.FailureOf(6), nullptr);
  for (std::uint64_t n = 7; n < 15; ++n) EXPECT_EQ(failed.FailureOf(n), late);
}

// Compares with a plain list that is searched from one end.
TEST(FailedIntervalsTest, FindsWhatASearchOfAllFinds) {
  std::mt19937 random(1);
  struct Plain {
    std::uint64_t first;
    std::uint64_t end;
    FailurePtr failure;
  };
  for (int round = 0; round < 50; ++round) {
    FailedIntervals failed;
    std::vector<Plain> plain;
    std::uint64_t number = 0;
    for (int i = 0; i < 30; ++i) {
      number += random() % 4;
      const FailurePtr failure = MakeFailure(number);
      if (random() % 3 == 0) {
        failed.AddAlone(number, failure);
        plain.push_back({number, number + 1, failure});
      } else {
        const std::uint64_t end = number + 1 + random() % 4;
        failed.Open(number, failure);
        failed.Close(end);
        plain.push_back({number, end, failure});
      }
      number = plain.back().end;
    }
    for (std::uint64_t n = 0; n < number + 3; ++n) {
      FailurePtr expected;
      for (const Plain& one : plain) {
        if (one.first <= n && n < one.end) expected = one.failure;
      }
      ASSERT_EQ(failed.FailureOf(n), expected) << n;
    }
  }
}

// A million queries after a hundred thousand failures: searching all failures
// would take 10^11 steps, an hour or so.
TEST(FailedIntervalsTest, ManyFailuresStayCheapAndExact) {
  constexpr std::uint64_t kFailures = 100'000;
  FailedIntervals failed;
  for (std::uint64_t i = 0; i < kFailures; ++i) {
    failed.Open(10 * i, MakeFailure(10 * i));
    failed.Close(10 * i + 2);
  }
  std::uint64_t wrong = 0;
  for (std::uint64_t n = 0; n < 10 * kFailures; ++n) {
    const FailurePtr failure = failed.FailureOf(n);
    if ((failure != nullptr) != (n % 10 < 2)) ++wrong;
    if (failure != nullptr && failure->number != n / 10 * 10) ++wrong;
  }
  EXPECT_EQ(wrong, 0u);
}

// A stream that has taken ten operations.
class Ledger final : public FailureLedger {
 public:
  std::uint64_t pushed() const override { return 10; }
  void Lose(FailurePtr failure) {
    MutexLock lock(mutex_);
    lost_ = failure;
    Open(7, failure);
  }
};

TEST(FailureLedgerTest, ReportsAFailureOnceAndOnlyToWhoIsBehindIt) {
  Ledger ledger;
  EXPECT_FALSE(ledger.ever_failed());
  ledger.Report(10, "Synchronize", {});
  EXPECT_FALSE(ledger.Skip(3));
  const FailurePtr failure = MakeFailure(3);
  ledger.Fail(3, failure);
  ledger.Fail(4, MakeFailure(4));  // a consequence
  EXPECT_TRUE(ledger.ever_failed());
  EXPECT_TRUE(ledger.Skip(5));
  EXPECT_FALSE(ledger.Skip(2));
  EXPECT_EQ(ledger.Unreported(), failure);
  ledger.Report(3, "Finish", {});
  ledger.ThrowIfLost("copy", {});
  EXPECT_THROW(ledger.Report(4, "Finish", {}), AsyncError);
  EXPECT_EQ(ledger.Unreported(), nullptr);
  ledger.Report(10, "Synchronize", {});
  EXPECT_EQ(ledger.FailureOf(9), failure);
  EXPECT_EQ(ledger.FailureOf(10), nullptr);
}

TEST(FailureLedgerTest, AFollowerReportsNothingAndStartsAgainWithItsLeader) {
  Ledger leader, follower;
  leader.SetFollower(&follower);
  const FailurePtr failure = MakeFailure(3);
  follower.Fail(3, failure);
  EXPECT_EQ(follower.Unreported(), nullptr);
  follower.Report(10, "Synchronize", {});
  EXPECT_EQ(follower.FailureOf(12), failure);
  leader.Fail(5, failure);
  EXPECT_THROW(leader.Report(10, "Synchronize", {}), AsyncError);
  EXPECT_EQ(follower.FailureOf(9), failure);
  EXPECT_EQ(follower.FailureOf(10), nullptr);
  // What was requested before the report is past, also if it fails later.
  Ledger leader_of_late, late;
  leader_of_late.SetFollower(&late);
  leader_of_late.Fail(5, failure);
  EXPECT_THROW(leader_of_late.Report(10, "Synchronize", {}), AsyncError);
  late.Fail(8, failure);
  EXPECT_EQ(late.FailureOf(9), failure);
  EXPECT_EQ(late.FailureOf(10), nullptr);
}

TEST(FailureLedgerTest, ReportsALostDeviceEveryTime) {
  Ledger ledger;
  const FailurePtr lost = MakeFailure(7);
  ledger.Lose(lost);
  EXPECT_EQ(ledger.Unreported(), lost);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(ledger.ThrowIfLost("copy", {}), AsyncError);
    EXPECT_THROW(ledger.Report(3, "Finish", {}), AsyncError);
  }
  EXPECT_EQ(ledger.Unreported(), nullptr);
  EXPECT_EQ(ledger.FailureOf(12), lost);
}

}  // namespace
}  // namespace d2l
