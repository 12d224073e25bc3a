#include "common/base/spin_wait.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "common/base/machine.h"

namespace d2l {

std::int64_t SpinWait::ProcessNanos() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

void SpinWait::LoseCore(std::int64_t away_nanos, std::int64_t run_nanos) {
  // Not a static variable: a child must not wait for the parent's threads.
  static std::atomic<int> cores{0};
  if (cores.load(std::memory_order_relaxed) == 0) {
    cores.store(UsableCores(), std::memory_order_relaxed);
  }
  if (!IsCrowded(away_nanos, run_nanos, cores)) return;
  const std::int64_t last = crowded_nanos_.load(std::memory_order_relaxed);
  const bool again =
      now_ < crowded_until_.load(std::memory_order_relaxed) + last;
  const std::int64_t next = again ? std::min(2 * last, kMost) : kLeast;
  crowded_nanos_.store(next, std::memory_order_relaxed);
  crowded_until_.store(now_ + next, std::memory_order_relaxed);
  until_ = now_;  // one more poll
}

}  // namespace d2l
