// CoreGate: the cores of a virtual device, each for one thread at a time.
//
//   gate.Take();  // waits while all are taken
//   Compute();
//   gate.Release();
//
// Threads that wait get a core in the order in which they came. While there
// are cores enough, taking and releasing one is an atomic addition each.
//
// A thread that has a core must wait for nothing but threads that have one,
// too.
//
// Thread-safe.

#ifndef D2L_COMMON_DEVICE_CPU_CORE_GATE_H_
#define D2L_COMMON_DEVICE_CPU_CORE_GATE_H_

#include <atomic>
#include <cstdint>

#include "common/base/event_count.h"

namespace d2l {

class CoreGate {
 public:
  explicit CoreGate(int cores) : free_(cores) {}
  CoreGate(const CoreGate&) = delete;
  CoreGate& operator=(const CoreGate&) = delete;

  void Take() {
    if (free_.fetch_sub(1) <= 0) WaitInLine();
  }
  // False, at once, if all are taken.
  bool TryTake() {
    int free = free_.load();
    while (free > 0) {
      if (free_.compare_exchange_weak(free, free - 1)) return true;
    }
    return false;
  }
  // True if the core is free then; false if a thread that waited has it.
  bool Release() {
    if (free_.fetch_add(1) >= 0) return true;
    ServeFirst();
    return false;
  }

  // How many are free; not above 0 if none is.
  int free() const { return free_.load(); }
  // A thread waits for a core. Cheap enough to ask after every task.
  bool wanted() const { return free_.load(std::memory_order_relaxed) < 0; }

 private:
  // A stream that is about to wait for an event keeps its core for less than
  // this; a turn is far longer (cpu_stream.cc).
  static constexpr std::int64_t kSpinNanos = 2'000;

  void WaitInLine() {
    const std::uint64_t number = waited_.fetch_add(1);
    // Bounded by the tasks that have the cores.
    changed_.Await(
        kSpinNanos, [&] { return served_.load() > number; },
        /*keeps_core=*/true, EventCount::Lane(number));
  }
  void ServeFirst() {
    const std::uint64_t number = served_.fetch_add(1);
    changed_.Notify(EventCount::kAll, EventCount::Lane(number));
  }

  // If negative, as many threads wait, or are about to.
  alignas(64) std::atomic<int> free_;
  // How many threads have begun to wait, and how many of them have got a core,
  // perhaps before they began.
  alignas(64) std::atomic<std::uint64_t> waited_{0};
  std::atomic<std::uint64_t> served_{0};
  EventCount changed_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_CORE_GATE_H_
