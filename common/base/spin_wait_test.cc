#include "common/base/spin_wait.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <thread>
#include <vector>

#include "common/base/machine.h"
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

// Processes that use all cores.
class OtherPrograms {
 public:
  OtherPrograms() {
    for (int i = UsableCores(); i > 0; --i) {
      pids_.push_back(fork());
      if (pids_.back() != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile int spin = 0;;) spin = 0;
    }
  }
  ~OtherPrograms() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> pids_;
};

TEST(SpinWait, SleepsAtOnceWhenACoreWasLostToAnotherProgram) {
  {
    const OtherPrograms others;
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
