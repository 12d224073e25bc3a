// SpinWait: how long a thread looks for what it waits for before it sleeps
// (event_count.h).
//
//   const auto done = [&] { return finished.load(); };
//   if (SpinWait::Until(/*nanos=*/120'000, done)) return;
//   Sleep();
//
// Continue gives the core to another thread that waits for it. Beside other
// programs that is a mistake: the scheduler takes a thread that yields for one
// that does not mind, and leaves the core to them for a whole time slice, 4 ms,
// where one that sleeps is woken in 50 us. So when a core was lost in this way,
// all threads sleep at once for the next 4 ms, and for twice as long if it soon
// happens again.
//
// Each SpinWait is used by one thread.

#ifndef D2L_COMMON_BASE_SPIN_WAIT_H_
#define D2L_COMMON_BASE_SPIN_WAIT_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "common/base/timer.h"

namespace d2l {

// The hint to the processor that this thread spins: lets the other hardware
// thread run and saves power; 5 to 60 ns.
inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

class SpinWait {
 public:
  explicit SpinWait(std::int64_t nanos) : start_(NowNanos()), now_(start_) {
    if (start_ >= crowded_until_.load(std::memory_order_relaxed)) {
      until_ = start_ + nanos;
    }
  }
  // Before it sleeps.
  ~SpinWait() {
    Look();
    Count(nanos());
  }
  SpinWait(const SpinWait&) = delete;
  SpinWait& operator=(const SpinWait&) = delete;

  // Looks whether it holds, until it does or the time is over. Who makes it
  // hold may be waiting for this very core: it gives it up between, unless it
  // `keeps_core`, for a short time.
  template <typename Holds>
  static bool Until(std::int64_t nanos, const Holds& holds,
                    bool keeps_core = false) {
    SpinWait spin(nanos);
    do {
      for (int i = 0; i < kLooks; ++i) {
        if (holds()) return true;
        Pause();
      }
    } while (keeps_core ? spin.ContinueSoon() : spin.Continue());
    return false;
  }

  // After a look in vain: whether to look again.
  bool Continue() {
    if (now_ >= until_) return GiveUp();
    std::this_thread::yield();
    return Look();
  }
  // The same, but keeps the core.
  bool ContinueSoon() { return now_ < until_ ? Look() : GiveUp(); }

  // From its making to the last look, while it had a core.
  std::int64_t nanos() const { return now_ - start_; }

  // How long all threads of the program have looked or were about to sleep, and
  // how long this one, with what Count adds for looking without a SpinWait.
  static std::int64_t AllNanos() {
    return all_nanos_.load(std::memory_order_relaxed);
  }
  static std::int64_t OwnNanos() { return own_nanos_; }
  static void Count(std::int64_t nanos) {
    own_nanos_ += nanos;
    all_nanos_.fetch_add(nanos, std::memory_order_relaxed);
  }

 private:
  // How often Until looks before it lets another thread have the core: a
  // microsecond or so.
  static constexpr int kLooks = 32;
  // Longer than a look, shorter than a time slice.
  static constexpr std::int64_t kLostCoreNanos = 500'000;
  // How long all threads sleep at once.
  static constexpr std::int64_t kLeast = 4'000'000;
  static constexpr std::int64_t kMost = 128'000'000;

  // What it costs a thread to fall asleep, or to find that it need not.
  static constexpr std::int64_t kSleepNanos = 10'000;

  static bool GiveUp() {
    Count(kSleepNanos);
    return false;
  }
  bool Look() {
    const std::int64_t before = now_;
    now_ = NowNanos();
    if (now_ - before > kLostCoreNanos) {
      const std::int64_t last = crowded_nanos_.load(std::memory_order_relaxed);
      const bool again =
          now_ < crowded_until_.load(std::memory_order_relaxed) + last;
      const std::int64_t next = again ? std::min(2 * last, kMost) : kLeast;
      crowded_nanos_.store(next, std::memory_order_relaxed);
      crowded_until_.store(now_ + next, std::memory_order_relaxed);
      until_ = now_;            // one more look
      start_ += now_ - before;  // it was not spent with looking
    }
    return true;
  }

  inline static std::atomic<std::int64_t> crowded_until_{0};
  inline static std::atomic<std::int64_t> crowded_nanos_{kLeast};
  inline static std::atomic<std::int64_t> all_nanos_{0};
  inline static thread_local std::int64_t own_nanos_ = 0;

  std::int64_t start_;
  std::int64_t now_;
  std::int64_t until_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_SPIN_WAIT_H_
