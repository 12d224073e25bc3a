#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/base/ticks.h"
#include "common/base/timer.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

SourceLocation Here(SourceLocation at = SourceLocation::Current()) {
  return at;
}

TEST(SourceLocation, NamesTheLineOfTheCall) {
  const int line = __LINE__ + 1;
  const SourceLocation at = Here();
  EXPECT_EQ(at.line(), line);
  EXPECT_STREQ(at.file(), __FILE__);
  EXPECT_EQ(at.ToString(), std::string(__FILE__) + ":" + std::to_string(line));
}

TEST(SourceLocation, UnknownIsSaid) {
  EXPECT_FALSE(SourceLocation().known());
  EXPECT_EQ(SourceLocation().ToString(), "an unknown place");
  EXPECT_NE(SourceLocation(), Here());
  EXPECT_EQ(SourceLocation("a.cc", 3), SourceLocation("a.cc", 3));
}

TEST(Timer, NeverGoesBack) {
  Timer timer;
  std::int64_t last = timer.Nanos();
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t now = timer.Nanos();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GE(timer.Seconds(), 1e-9 * static_cast<double>(last));
}

TEST(SpinLock, ExcludesOtherThreads) {
  SpinLock lock;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        std::lock_guard<SpinLock> guard(lock);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 20000);
}

TEST(SpinLock, TryLockFailsWhileTaken) {
  SpinLock lock;
  if (!lock.try_lock()) FAIL() << "a new lock is free";
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
}

TEST(Ticks, AreNanosecondsAfterConversion) {
  // Waits until the length of a tick is known well.
  const Timer since;
  while (since.Nanos() < 20'000'000) {
  }
  const TickScale begin;
  std::int64_t before[100];
  std::int64_t ticks[100];
  std::int64_t after[100];
  for (int i = 0; i < 100; ++i) {
    before[i] = NowNanos();
    ticks[i] = NowTicks();
    after[i] = NowNanos();
  }
  const TickScale end;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t nanos = TickScale::ToNanos(ticks[i], begin, end);
    // A scale is made of readings that are themselves some nanoseconds apart.
    EXPECT_GE(nanos, before[i] - 2000);
    EXPECT_LE(nanos, after[i] + 2000);
    if (i > 0) {
      EXPECT_GE(nanos, TickScale::ToNanos(ticks[i - 1], begin, end));
    }
  }
  EXPECT_NEAR(TickScale().ToNanos(NowTicks()), NowNanos(), 1'000'000);
}

TEST(Ticks, OutsideTheTwoMomentsTheNearerOneCounts) {
  const std::int64_t long_before = NowTicks();
  const TickScale begin;
  const TickScale end;
  const std::int64_t later = NowTicks();
  EXPECT_EQ(TickScale::ToNanos(long_before, begin, end),
            begin.ToNanos(long_before));
  EXPECT_EQ(TickScale::ToNanos(later, begin, end), end.ToNanos(later));
}

}  // namespace
}  // namespace d2l
