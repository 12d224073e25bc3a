// SpinWait: how long a thread looks for what it waits for before it sleeps.
//
//   SpinWait spin(/*nanos=*/120'000);
//   do {
//     if (Done()) return;
//   } while (spin.Continue());
//   Sleep();
//
// Continue gives the core to another thread that waits for it. Beside other
// programs that is a mistake: the scheduler takes a thread that yields for one
// that does not mind, and leaves the core to them for a whole time slice, 4 ms,
// where one that sleeps is woken in 50 us. So when a core was lost in this way,
// all threads sleep at once for the next 0.1 s.
//
// Each is used by one thread.

#ifndef D2L_COMMON_BASE_SPIN_WAIT_H_
#define D2L_COMMON_BASE_SPIN_WAIT_H_

#include <atomic>
#include <cstdint>
#include <thread>

#include "common/base/timer.h"

namespace d2l {

class SpinWait {
 public:
  explicit SpinWait(std::int64_t nanos) : start_(NowNanos()), now_(start_) {
    if (start_ >= crowded_until_.load(std::memory_order_relaxed)) {
      until_ = start_ + nanos;
    }
  }
  ~SpinWait() {
    if (now_ > start_) {
      spun_nanos_.fetch_add(nanos(), std::memory_order_relaxed);
    }
  }
  SpinWait(const SpinWait&) = delete;
  SpinWait& operator=(const SpinWait&) = delete;

  // After a look in vain: whether to look again.
  bool Continue() {
    if (now_ >= until_) return false;
    std::this_thread::yield();
    return Look();
  }
  // The same, but keeps the core.
  bool ContinueSoon() { return now_ < until_ && Look(); }

  // From its making to the last look, while it had a core.
  std::int64_t nanos() const { return now_ - start_; }

  // How long all threads of the program have looked in vain.
  static std::int64_t SpunNanos() {
    return spun_nanos_.load(std::memory_order_relaxed);
  }

 private:
  // Longer than a look, shorter than a time slice.
  static constexpr std::int64_t kLostCoreNanos = 500'000;
  static constexpr std::int64_t kCrowdedNanos = 100'000'000;

  bool Look() {
    const std::int64_t before = now_;
    now_ = NowNanos();
    if (now_ - before > kLostCoreNanos) {
      crowded_until_.store(now_ + kCrowdedNanos, std::memory_order_relaxed);
      until_ = now_;  // one more look
      start_ += now_ - before;  // it was not spent with looking
    }
    return true;
  }

  inline static std::atomic<std::int64_t> crowded_until_{0};
  inline static std::atomic<std::int64_t> spun_nanos_{0};

  std::int64_t start_;
  std::int64_t now_;
  std::int64_t until_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_SPIN_WAIT_H_
