#include "common/base/undisturbed_timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "common/base/busy_cores_testing.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

ProcessTimes Of(const std::vector<double>& waited, double run,
                double ended = 0) {
  ProcessTimes times;
  for (const double seconds : waited) {
    times.waited[static_cast<int>(times.waited.size())] = seconds;
  }
  times.run = run;
  times.ended_waited = ended;
  return times;
}

TEST(Undisturbed, AddsUpTheWaitsOfAllThreads) {
  const ProcessTimes begin = Of({1, 2}, 0);
  EXPECT_TRUE(Undisturbed(1, begin, Of({1.014, 2.014}, 1), 2));
  EXPECT_FALSE(Undisturbed(1, begin, Of({1.016, 2.016}, 1), 2));
  // A thread that has begun since, one that has ended, and one that said how
  // long it had waited when it ended.
  EXPECT_FALSE(Undisturbed(1, begin, Of({1, 2, 0.5}, 1), 2));
  EXPECT_TRUE(Undisturbed(1, begin, Of({1}, 1), 2));
  EXPECT_FALSE(Undisturbed(1, begin, Of({1}, 1, /*ended=*/0.5), 2));
}

TEST(Undisturbed, AllowsAShortTimeWhatALookCosts) {
  EXPECT_TRUE(Undisturbed(1e-6, Of({0}, 0), Of({19e-6}, 0), 20));
  EXPECT_FALSE(Undisturbed(1e-6, Of({0}, 0), Of({21e-6}, 0), 40));
}

TEST(Undisturbed, ThreadsOfTheProgramMayWaitForEachOther) {
  // Four threads on two cores, which they kept busy.
  const ProcessTimes begin = Of({0, 0, 0, 0}, 0);
  EXPECT_TRUE(Undisturbed(4, begin, Of({2, 2, 2, 2}, 8), 2));
  // The cores' clock may be ahead.
  EXPECT_TRUE(Undisturbed(4, begin, Of({2, 2, 2, 2}, 8.1), 2));
  // Others had half a second.
  EXPECT_FALSE(Undisturbed(4, begin, Of({2, 2, 2, 2}, 7.5), 2));
}

TEST(Undisturbed, IsEverythingWhereTheKernelDoesNotCount) {
  EXPECT_TRUE(Undisturbed(2, Of({}, 0), Of({}, 1), 2));
}

bool Counts() { return !ProcessTimes::Read().waited.empty(); }

// Works for so long, then returns how long that took.
Elapsed Work(double seconds) {
  const UndisturbedTimer timer;
  const double begin = ThreadSeconds();
  while (ThreadSeconds() - begin < seconds) {
  }
  return timer.Read();
}

TEST(UndisturbedTimer, SeesOtherPrograms) {
  const BusyCores others(/*programs_per_core=*/2);
  if (!Counts()) GTEST_SKIP() << "the kernel does not count";
  // Three threads for each core: it waits for most of the time.
  EXPECT_FALSE(Work(0.05).undisturbed);
}

// The time that remains is the work's, whoever else runs.
TEST(UndisturbedTimer, AnUndisturbedRepeatIsATimeWithoutOtherPrograms) {
  if (!Counts()) GTEST_SKIP() << "the kernel does not count";
  const BusyCores others(/*programs_per_core=*/1);
  std::vector<double> undisturbed;
  for (int i = 0; i < 400 && undisturbed.size() < 9; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const Elapsed took = Work(0.001);
    if (took.undisturbed) undisturbed.push_back(took.seconds);
  }
  ASSERT_EQ(undisturbed.size(), 9u);
  std::sort(undisturbed.begin(), undisturbed.end());
  EXPECT_LT(undisturbed[4], 0.0012);
}

TEST(UndisturbedTimer, HearsOfThreadsThatEnd) {
  if (!Counts()) GTEST_SKIP() << "the kernel does not count";
  const BusyCores others(/*programs_per_core=*/2);
  const UndisturbedTimer timer;
  std::thread thread([] {
    Work(0.05);
    KeepWaits();
  });
  thread.join();
  EXPECT_FALSE(timer.Read().undisturbed);
}

}  // namespace
}  // namespace d2l
