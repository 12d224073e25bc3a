#include "common/device/cpu/core_gate.h"

#include <cstdint>

#include "common/base/pause.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

// A stream that is about to wait for an event keeps its core for less than
// this; a turn is far longer (cpu_stream.cc).
constexpr std::int64_t kSpinNanos = 2'000;

}  // namespace

bool CoreGate::TryTake() {
  int free = free_.load();
  while (free > 0) {
    if (free_.compare_exchange_weak(free, free - 1)) return true;
  }
  return false;
}

void CoreGate::WaitInLine() {
  Waiter self;
  {
    MutexLock lock(mutex_);
    if (served_early_ > 0) {
      --served_early_;
      return;
    }
    (first_ == nullptr ? first_ : last_->next) = &self;
    last_ = &self;
  }
  const std::int64_t until = NowNanos() + kSpinNanos;
  while (!self.served.load(std::memory_order_relaxed) && NowNanos() < until) {
    Pause();
  }
  // With the lock in any case: the thread that serves this one has it until it
  // is done with `self`. Bounded by the tasks that have the cores.
  MutexLock lock(mutex_);
  while (!self.served.load(std::memory_order_relaxed)) {
    self.changed.Wait(mutex_);
  }
}

void CoreGate::ServeFirst() {
  MutexLock lock(mutex_);
  if (first_ == nullptr) {
    ++served_early_;
    return;
  }
  Waiter& first = *first_;
  first_ = first.next;
  first.served.store(true, std::memory_order_relaxed);
  first.changed.NotifyOne();
}

}  // namespace d2l
