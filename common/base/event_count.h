// EventCount: threads sleep until something holds, and whoever makes it hold
// wakes them.
//
//   std::atomic<bool> done{false};
//   EventCount changed;
//   changed.Await(/*spin_nanos=*/120'000, [&] { return done.load(); });
//   // another thread:
//   done = true;
//   changed.Notify();
//
// Unlike a condition variable it needs no lock, and a Notify while nobody
// sleeps is one load. In exchange, what `holds` reads is written and read
// sequentially consistently: of a thread that falls asleep and one that
// notifies, at least one then sees what the other wrote. It sleeps in Linux's
// futex, as absl/synchronization/internal/futex_waiter.cc does.
//
// A sleep ends by Notify only: bound what you wait for. The EventCount outlives
// its last Notify, which may return after the thread it woke.
//
// Thread-safe.

#ifndef D2L_COMMON_BASE_EVENT_COUNT_H_
#define D2L_COMMON_BASE_EVENT_COUNT_H_

#include <atomic>
#include <cstdint>
#include <limits>

#include "common/base/spin_wait.h"

namespace d2l {

class EventCount {
 public:
  static constexpr int kAll = std::numeric_limits<int>::max();
  // Threads that are woken apart from others sleep in lanes of their own.
  static constexpr std::uint32_t kAllLanes = ~std::uint32_t{0};
  static constexpr std::uint32_t Lane(std::uint64_t n) { return 1u << n % 32; }

  EventCount() = default;
  EventCount(const EventCount&) = delete;
  EventCount& operator=(const EventCount&) = delete;

  // Sleeps until the next Notify, unless holds() already.
  template <typename Holds>
  void SleepUnless(Holds holds, std::uint32_t lanes = kAllLanes) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t round = round_.load(std::memory_order_seq_cst);
    if (!holds()) SleepInRound(round, lanes);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  // Sleeps until holds(), which is called at first and after every Notify.
  template <typename Holds>
  void Sleep(Holds holds, std::uint32_t lanes = kAllLanes) {
    bool held = false;
    while (!held) SleepUnless([&] { return held = holds(); }, lanes);
  }
  // The same, after having looked for so long: see SpinWait::Until.
  template <typename Holds>
  void Await(std::int64_t spin_nanos, Holds holds, bool keeps_core = false,
             std::uint32_t lanes = kAllLanes) {
    if (!SpinWait::Until(spin_nanos, holds, keeps_core)) Sleep(holds, lanes);
  }

  // Wakes threads that sleep, all or as many as `most`.
  void Notify(int most = kAll, std::uint32_t lanes = kAllLanes) {
    if (sleepers() != 0) Wake(most, lanes);
  }

  // How many sleep, or are about to, or have just been woken.
  int sleepers() const { return sleepers_.load(std::memory_order_seq_cst); }

 private:
  void SleepInRound(std::uint32_t round, std::uint32_t lanes);
  void Wake(int most, std::uint32_t lanes);

  std::atomic<int> sleepers_{0};
  // Changed by every Wake: who has looked before it does not fall asleep.
  std::atomic<std::uint32_t> round_{0};
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_EVENT_COUNT_H_
