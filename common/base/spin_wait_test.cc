#include "common/base/spin_wait.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

#include "common/base/busy_cores_testing.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

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

TEST(SpinWait, SleepsAtOnceWhenACoreWasLostToAnotherProgram) {
  {
    const BusyCores others(/*programs_per_core=*/1);
    // Repeated if it took so long that threads may poll again by then.
    for (int i = 0; i < 100; ++i) {
      AwaitFreeCores();
      SpinWait spin(60 * kSecond);
      while (spin.Continue()) {
      }
      const Timer timer;
      const bool next = SpinWait(60 * kSecond).Continue();
      bool of_thread = true;
      std::thread([&] {
        of_thread = SpinWait(60 * kSecond).Continue();
      }).join();
      if (timer.Nanos() > 3'000'000 && i < 99) continue;
      EXPECT_FALSE(next);
      EXPECT_FALSE(of_thread);
      break;
    }
  }
  AwaitFreeCores();
  EXPECT_TRUE(SpinWait(60 * kSecond).ContinueSoon());
}

TEST(SpinWait, ACoreThatThisProgramUsedWasNotLostToAnother) {
  constexpr std::int64_t kLost = 3'000'000;
  EXPECT_FALSE(SpinWait::IsCrowded(kLost, 2 * kLost, 2));
  EXPECT_FALSE(SpinWait::IsCrowded(kLost, 2 * kLost - 100'000, 2));
  EXPECT_TRUE(SpinWait::IsCrowded(kLost, kLost, 2));
  EXPECT_TRUE(SpinWait::IsCrowded(kLost, 0, 1));
  EXPECT_TRUE(SpinWait::IsCrowded(kLost, 15 * kLost, 16));
}

}  // namespace
}  // namespace d2l
