#include "common/base/spin_wait.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

namespace d2l {

std::int64_t SpinWait::ProcessNanos() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

void SpinWait::LoseCore(std::int64_t away_nanos, std::int64_t run_nanos) {
  // A quota of cores is not asked for: with one, others seem to use the rest.
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
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
