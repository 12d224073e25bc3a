// SpinWait: how long a thread polls a condition before it sleeps
// (event_count.h).
//
//   const auto done = [&] { return finished.load(); };
//   if (SpinWait::Until(/*nanos=*/120'000, done)) return;
//   Sleep();
//
// Continue yields the core to another thread that waits for it. This is costly
// while other programs run: the scheduler then gives them the core for a whole
// time slice, 4 ms, whereas it wakes a sleeping thread in 50 us. So when a
// thread has lost its core to another program, all threads sleep without
// polling for the next 4 ms, and for twice as long if it soon happens again.
//
// Each SpinWait is used by one thread.

#ifndef D2L_COMMON_BASE_SPIN_WAIT_H_
#define D2L_COMMON_BASE_SPIN_WAIT_H_

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>

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
  SpinWait(const SpinWait&) = delete;
  SpinWait& operator=(const SpinWait&) = delete;

  // Polls holds() until it is true or the time is over. The thread that makes
  // it true may be waiting for this very core, so Until yields the core in
  // between, unless `keeps_core`, which is for short waits.
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

  // After a poll that found nothing: returns whether to poll again.
  bool Continue() {
    if (now_ >= until_) return false;
    Look();
    const std::int64_t run = ProcessNanos();
    std::this_thread::yield();
    const std::int64_t away = Look();
    if (away > kLostCoreNanos) LoseCore(away, ProcessNanos() - run);
    return true;
  }
  // As Continue, but the thread keeps the core.
  bool ContinueSoon() {
    if (now_ >= until_) return false;
    Look();
    return true;
  }

  // From the construction to the last poll, without the time it had no core.
  std::int64_t nanos() const { return now_ - start_; }

  // Whether a thread that was away from its core for so long lost it to another
  // program: then this program did not run on all of so many cores.
  static bool IsCrowded(std::int64_t away_nanos, std::int64_t run_nanos,
                        int cores) {
    return cores * away_nanos - run_nanos > away_nanos / 2;
  }

 private:
  // How often Until polls before it yields the core: a microsecond or so.
  static constexpr int kLooks = 32;
  // Longer than a poll, shorter than a time slice.
  static constexpr std::int64_t kLostCoreNanos = 500'000;
  // For how long all threads sleep without polling.
  static constexpr std::int64_t kLeast = 4'000'000;
  static constexpr std::int64_t kMost = 128'000'000;

  // How long this program has run, on all cores together; 0.2 us.
  static std::int64_t ProcessNanos();
  // Returns the time since the last look. It is no polling if the thread cannot
  // have had its core for so long.
  std::int64_t Look() {
    const std::int64_t before = std::exchange(now_, NowNanos());
    if (now_ - before > kLostCoreNanos) start_ += now_ - before;
    return now_ - before;
  }
  // Lets all threads sleep if it was lost to another program, which ran while
  // this one ran for run_nanos.
  void LoseCore(std::int64_t away_nanos, std::int64_t run_nanos);

  inline static std::atomic<std::int64_t> crowded_until_{0};
  inline static std::atomic<std::int64_t> crowded_nanos_{kLeast};

  std::int64_t start_;
  std::int64_t now_;
  std::int64_t until_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_SPIN_WAIT_H_
