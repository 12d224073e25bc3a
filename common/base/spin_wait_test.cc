#include "common/base/spin_wait.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

#include "common/base/timer.h"

namespace d2l {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

void Burn(std::int64_t nanos) {
  const Timer timer;
  while (timer.Nanos() < nanos) {
  }
}

// Spins until a wait may last: a core may have been lost before this test.
void AwaitFreeCores() {
  const Timer timer;
  while (!SpinWait(kSecond).ContinueSoon() && timer.Seconds() < 60) {
  }
}

TEST(SpinWait, EndsWhenItsTimeIsOver) {
  SpinWait none(0);
  EXPECT_FALSE(none.Continue());
  const Timer timer;
  SpinWait spin(20'000);
  while (spin.ContinueSoon() && timer.Seconds() < 60) {
  }
  EXPECT_LT(timer.Seconds(), 60);
}

TEST(SpinWait, SleepsAtOnceWhenACoreWasLost) {
  AwaitFreeCores();
  SpinWait spin(60 * kSecond);
  Burn(1'000'000);  // as long as if the core had gone to another thread
  EXPECT_TRUE(spin.ContinueSoon()) << "what it waits for may have been done";
  EXPECT_FALSE(spin.ContinueSoon());
  EXPECT_FALSE(SpinWait(60 * kSecond).Continue());
  std::thread([] {
    EXPECT_FALSE(SpinWait(60 * kSecond).Continue()) << "another thread";
  }).join();
  AwaitFreeCores();
  EXPECT_TRUE(SpinWait(60 * kSecond).ContinueSoon());
}

TEST(SpinWait, CountsHowLongItLooked) {
  AwaitFreeCores();
  const std::int64_t own = SpinWait::OwnNanos(), all = SpinWait::AllNanos();
  const Timer timer;
  {
    SpinWait spin(100'000);
    while (spin.ContinueSoon()) {
    }
  }
  std::thread([] { SpinWait::Count(5 * kSecond); }).join();
  EXPECT_LE(SpinWait::OwnNanos() - own, timer.Nanos());
  EXPECT_GE(SpinWait::AllNanos() - all, 5 * kSecond);
  EXPECT_EQ(SpinWait::AllNanos() - all - 5 * kSecond,
            SpinWait::OwnNanos() - own);
}

}  // namespace
}  // namespace d2l
