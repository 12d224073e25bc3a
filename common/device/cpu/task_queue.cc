#include "common/device/cpu/task_queue.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <thread>

#include "common/base/machine.h"
#include "common/base/source_location.h"
#include "common/base/spin_wait.h"
#include "common/base/timer.h"
#include "common/device/listener.h"
#include "common/device/stream.h"

namespace d2l {
namespace {

// How long a thread polls before it sleeps. It must be longer than a wake-up
// takes (20 to 70 us): when a program waits for each task, each of the two
// threads waits while the other wakes up, and if either gave up sooner, both
// would sleep and be woken every time.
constexpr std::int64_t kSpinNanos = 120'000;
// With more workers awake than cores, a spinning one takes the core of another
// that has work. Those that sleep take none: streams that a program made and no
// longer uses slow down nobody.
constexpr std::int64_t kCrowdedSpinNanos = 2'000;

// A waiting thread polls all the time for so long, then every few microseconds.
constexpr std::int64_t kSoonNanos = 1'000;

// Of all queues, those whose consumer does not sleep.
std::atomic<int> awake{0};

// The first call is made before there is a worker: if a process forked while a
// thread initialised `cores`, the child would wait for ever.
int Cores() {
  static const int cores = UsableCores();
  return cores;
}

// Whether a thread that polls since the construction of `spin` polls again.
bool KeepsSpinning(SpinWait& spin) {
  const bool crowded = awake.load(std::memory_order_relaxed) > Cores();
  return !(crowded && spin.nanos() >= kCrowdedSpinNanos) && spin.Continue();
}

std::uint64_t PowerOfTwoFrom(std::uint64_t n) {
  std::uint64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

}  // namespace

TaskQueue::Slot* TaskQueue::MapSlots(std::uint64_t count) {
  // Mapped, not allocated: untouched slots of a large queue cost no memory,
  // and zero bytes are unpublished slots.
  void* slots = mmap(nullptr, count * sizeof(Slot), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (slots == MAP_FAILED) throw std::bad_alloc();
  // A page fault costs as much as twenty pushes, so the fewer the better.
  madvise(slots, count * sizeof(Slot), MADV_HUGEPAGE);
  return static_cast<Slot*>(slots);
}

TaskQueue::TaskQueue(std::int64_t bound)
    : bound_(static_cast<std::uint64_t>(bound)),
      full_(internal::QueueFullName(bound_)),
      mask_(PowerOfTwoFrom(bound_) - 1),
      slots_(MapSlots(mask_ + 1)) {
  Cores();
  awake.fetch_add(1, std::memory_order_relaxed);
}

TaskQueue::~TaskQueue() {
  awake.fetch_sub(1, std::memory_order_relaxed);
  munmap(slots_, (mask_ + 1) * sizeof(Slot));
}

TaskQueue::Slot* TaskQueue::WaitForFront(bool polls) {
  for (;;) {
    if (polls) {
      SpinWait spin(kSpinNanos);
      do {
        Slot* const slot = TryFrontLater([] { return false; });
        if (slot != nullptr) return slot;
        // The producer may be waiting for this very core.
      } while (KeepsSpinning(spin));
    }
    // This sleep is not bounded: an idle stream sleeps until there is work or
    // Stop. Once woken, perhaps for a task that is done already, it polls again
    // for a while.
    awake.fetch_sub(1, std::memory_order_relaxed);
    consumer_.SleepUnless([this] {
      asleep_.store(true, std::memory_order_seq_cst);
      // Here either this thread sees the number a producer has taken, or that
      // producer sees the flag: both accesses are sequentially consistent.
      return tail_.load(std::memory_order_seq_cst) != head_ ||
             stopped_.load(std::memory_order_seq_cst);
    });
    awake.fetch_add(1, std::memory_order_relaxed);
    asleep_.store(false, std::memory_order_relaxed);
    if (Slot* const slot = TryFront()) return slot;
    if (tail_.load(std::memory_order_seq_cst) != head_) {
      // A producer has its number but has not filled the slot. It may have lost
      // its core to this thread.
      std::this_thread::yield();
    } else if (stopped_.load(std::memory_order_seq_cst)) {
      return nullptr;
    }
  }
}

void TaskQueue::PopFront() {
  ++head_;
  // Sequentially consistent, as is the store of wake_at_: of a waiter and
  // this thread at least one sees what the other wrote.
  completed_.store(head_, std::memory_order_seq_cst);
  if (wake_at_.load(std::memory_order_seq_cst) <= head_) {
    wake_at_.store(~std::uint64_t{0}, std::memory_order_seq_cst);
    waiters_.Notify();
  }
}

void TaskQueue::Wake() {
  if (!asleep_.exchange(false)) return;
  woken_at_.store(NowNanos(), std::memory_order_relaxed);
  wakeups_.fetch_add(1, std::memory_order_relaxed);
  consumer_.Notify();
}

void TaskQueue::Stop() {
  stopped_.store(true, std::memory_order_seq_cst);
  Wake();
}

void TaskQueue::WaitUntilCompleted(std::uint64_t count) {
  if (PollUntilCompleted(count, [] { return false; })) return;
  SleepUntilCompleted(count);
}

bool TaskQueue::PollUntilCompleted(std::uint64_t count,
                                   absl::FunctionRef<bool()> help) {
  if (completed() >= count) return true;
  hurry_.store(true, std::memory_order_relaxed);
  // Reading the counter takes its cache line from the worker, so after the time
  // of one small operation it is polled less often.
  SpinWait soon(kSoonNanos);
  do {
    if (completed() >= count) return true;
    for (int i = 0; i < 2; ++i) Pause();
  } while (soon.ContinueSoon());
  bool helped = false;
  do {
    SpinWait spin(kSpinNanos);
    helped = false;
    do {
      if (completed() >= count) return true;
      for (int i = 0; i < 64 && !helped; ++i) {
        Pause();
        helped = help();
      }
      // The worker may be waiting for this very core.
    } while (!helped && KeepsSpinning(spin));
  } while (helped);
  return false;
}

void TaskQueue::WaitForRoom(std::uint64_t number) {
  const std::uint64_t enough = number - bound_ + 1;
  if (completed() < enough) {
    // If woken for a single free slot, the producer would sleep again after one
    // push; so it sleeps until half of the queue is free.
    const internal::WaitScope scope(full_, SourceLocation(), bound_);
    SleepUntilCompleted(enough, enough + bound_ / 2);
  }
  known_completed_.store(completed(), std::memory_order_release);
}

void TaskQueue::SleepUntilCompleted(std::uint64_t count,
                                    std::uint64_t wake_at) {
  internal::ThrowIfForked("Wait");
  // The wait is bounded by the work ahead: tasks below `wake_at` are published
  // already or by producers that wait for a smaller number.
  waiters_.Sleep([&] {
    std::uint64_t first = wake_at_.load();
    while (wake_at < first && !wake_at_.compare_exchange_weak(first, wake_at)) {
    }
    return completed_.load(std::memory_order_seq_cst) >= count;
  });
}

}  // namespace d2l
