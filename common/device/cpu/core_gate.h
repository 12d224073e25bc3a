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

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

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
  bool TryTake();
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
  struct Waiter {
    std::atomic<bool> served{false};
    CondVar changed;
    Waiter* next = nullptr;
  };

  void WaitInLine();
  void ServeFirst();

  // If negative, as many threads wait, or are about to.
  alignas(64) std::atomic<int> free_;
  Mutex mutex_;
  Waiter* first_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Waiter* last_ ABSL_GUARDED_BY(mutex_) = nullptr;  // if there is a first one
  // Cores for threads that are about to wait.
  int served_early_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_CORE_GATE_H_
