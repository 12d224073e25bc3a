// EventCount: threads sleep until a condition holds, and the thread that makes
// it hold wakes them.
//
//   std::atomic<bool> done{false};
//   EventCount changed;
//   changed.Await(/*spin_nanos=*/120'000, [&] { return done.load(); });
//   // another thread:
//   done = true;
//   changed.Notify();
//
// Unlike a condition variable it needs no lock, and a Notify while no thread
// sleeps is one load. In exchange, the variables that `holds` reads must be
// written and read with sequential consistency: of a thread that falls asleep
// and one that notifies, at least one then sees what the other wrote. It sleeps
// in Linux's futex, as absl/synchronization/internal/futex_waiter.cc does.
//
// Only Notify ends a sleep: wait only for what is certain to happen. The
// EventCount outlives its last Notify, which may return after the woken thread.
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
  // A thread sleeps in one or more of 32 lanes; Notify wakes those it names.
  static constexpr std::uint32_t kAllLanes = ~std::uint32_t{0};
  static constexpr std::uint32_t Lane(std::uint64_t n) { return 1u << n % 32; }

  EventCount() = default;
  EventCount(const EventCount&) = delete;
  EventCount& operator=(const EventCount&) = delete;

  // Sleeps until the next Notify, unless holds() is true already.
  template <typename Holds>
  void SleepUnless(Holds holds, std::uint32_t lanes = kAllLanes) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t round = round_.load(std::memory_order_seq_cst);
    if (!holds()) SleepInRound(round, lanes);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  // Sleeps until holds() is true; calls it first and after every Notify.
  template <typename Holds>
  void Sleep(Holds holds, std::uint32_t lanes = kAllLanes) {
    bool held = false;
    while (!held) SleepUnless([&] { return held = holds(); }, lanes);
  }
  // Polls for spin_nanos before it sleeps: see SpinWait::Until.
  template <typename Holds>
  void Await(std::int64_t spin_nanos, Holds holds, bool keeps_core = false,
             std::uint32_t lanes = kAllLanes) {
    if (!SpinWait::Until(spin_nanos, holds, keeps_core)) Sleep(holds, lanes);
  }

  // Wakes at most `most` of the threads that sleep.
  void Notify(int most = kAll, std::uint32_t lanes = kAllLanes) {
    if (sleepers() != 0) Wake(most, lanes);
  }

  // How many threads sleep, are about to, or have just been woken.
  int sleepers() const { return sleepers_.load(std::memory_order_seq_cst); }

 private:
  void SleepInRound(std::uint32_t round, std::uint32_t lanes);
  void Wake(int most, std::uint32_t lanes);

  std::atomic<int> sleepers_{0};
  // Every Wake changes it, so that a thread whose holds() was false before the
  // Wake does not fall asleep.
  std::atomic<std::uint32_t> round_{0};
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_EVENT_COUNT_H_
