#include "common/base/undisturbed_timer.h"

#include <gtest/gtest.h>
#include <time.h>

#include <optional>
#include <vector>

#include "common/base/busy_cores_testing.h"

namespace d2l {
namespace {

using Thread = ProcessTimes::Thread;

ProcessTimes Of(std::vector<Thread> threads) {
  ProcessTimes times;
  for (const Thread& thread : threads) {
    times.threads[static_cast<int>(times.threads.size())] = thread;
    times.run += thread.run;
  }
  return times;
}

TEST(Undisturbed, IsKnownExactlyOfOneThread) {
  // The thread ran for 2 s of 5, and waited for the other 3.
  const std::optional<Bounds> b =
      Undisturbed(5, Of({{1, 1, 0}}), Of({{3, 4, 0}}));
  ASSERT_TRUE(b);
  EXPECT_DOUBLE_EQ(b->least, 2);
  EXPECT_DOUBLE_EQ(b->most, 2);
}

TEST(Undisturbed, IsWideWhereThreadsMayRunSideBySide) {
  // Two threads ran for 2 s each, in turn, on one core: 2 s on two cores, or 4
  // s if one waited for the other.
  const std::optional<Bounds> b =
      Undisturbed(4, Of({{}, {}}), Of({{2, 2, 0}, {2, 2, 0}}));
  ASSERT_TRUE(b);
  EXPECT_DOUBLE_EQ(b->least, 2);
  EXPECT_DOUBLE_EQ(b->most, 4);
}

TEST(Undisturbed, CountsWhatAllSlept) {
  // 1 s of work, 2 s asleep, and 3 s of waiting for a core.
  const std::optional<Bounds> b =
      Undisturbed(6, Of({{}, {}}), Of({{1, 3, 0}, {}}));
  EXPECT_DOUBLE_EQ(b->least, 3);
  EXPECT_DOUBLE_EQ(b->most, 3);
}

TEST(Undisturbed, LeavesOutLookingAndSwitching) {
  ProcessTimes after = Of({{3, 0, 0}, {1, 0, 0}});
  after.self_spun = 1.5;
  // The busiest thread did 1.5 s of work.
  EXPECT_DOUBLE_EQ(Undisturbed(3, Of({{}, {}}), after)->least, 1.5);
  after.self_spun = 0;
  after.others_spun = 1;  // not of this thread
  EXPECT_DOUBLE_EQ(Undisturbed(3, Of({{}, {}}), after)->least, 3);
  after.threads[1].slices = 1000;
  const std::optional<Bounds> b = Undisturbed(3, Of({{}, {}}), after);
  EXPECT_LT(b->least, 3);
  EXPECT_GT(b->least, 2.9);
  after.threads[1].slices = 1e9;
  EXPECT_EQ(Undisturbed(3, Of({{}, {}}), after)->least, 0);
}

TEST(Undisturbed, CountsNoWaitFromBefore) {
  // A thread had waited for 9 s when the timer began, and did nothing.
  const std::optional<Bounds> b =
      Undisturbed(2, Of({{}, {}}), Of({{2, 0, 0}, {0, 9, 0}}));
  EXPECT_DOUBLE_EQ(b->least, 2);
  EXPECT_DOUBLE_EQ(b->most, 2);
}

TEST(Undisturbed, IsUnknownWhereAThreadEndedOrNothingIsSaid) {
  EXPECT_FALSE(Undisturbed(2, Of({{}, {}}), Of({{2, 0, 0}})));
  EXPECT_FALSE(Undisturbed(2, Of({}), Of({})));
  EXPECT_TRUE(Undisturbed(2, Of({}), Of({{2, 0, 0}}))) << "one has begun";
}

TEST(Part, MayHoldAllThatWasLost) {
  const Elapsed whole = {5, Bounds{4, 5}};
  EXPECT_DOUBLE_EQ(Part(3, whole).undisturbed->least, 2);
  EXPECT_DOUBLE_EQ(Part(3, whole).undisturbed->most, 3);
  EXPECT_DOUBLE_EQ(Part(0.5, whole).undisturbed->least, 0);
  EXPECT_FALSE(Part(3, {5, {}}).undisturbed);
}

double ThreadSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(UndisturbedTimer, KnowsWhatAThreadDidBesideOtherPrograms) {
  const BusyCores others(/*programs_per_core=*/2);
  const UndisturbedTimer timer;
  const double begin = ThreadSeconds();
  while (ThreadSeconds() - begin < 0.05) {
  }
  const double did = ThreadSeconds() - begin;
  const Elapsed took = timer.Read();
  if (!took.undisturbed) GTEST_SKIP() << "the kernel does not say";
  // The kernel's accounts of both may differ by a tick of its clock, at the
  // beginning and at the end.
  constexpr double kTicks = 0.008;
  EXPECT_LE(took.undisturbed->least, did + kTicks);
  EXPECT_GE(took.undisturbed->most, did - kTicks);
  EXPECT_LE(took.undisturbed->most, took.seconds);
  // Three threads for each core: it waited for most of the time. The kernel
  // counts that it waited, so little else is left.
  EXPECT_LE(took.undisturbed->most, did + 0.2 * (took.seconds - did) + 0.005);
}

}  // namespace
}  // namespace d2l
