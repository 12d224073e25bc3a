// TaskQueue: the bounded queue between the producers of a CPU stream and its
// one worker.
//
//   TaskQueue queue(4096);
//   std::uint64_t n = queue.Push(label, [=] { out[0] = a[0] + b[0]; });
//   // on the one consuming thread:
//   while (TaskQueue::Slot* slot = queue.Front()) {
//     slot->run(slot->payload, TaskQueue::Action::kRun, nullptr);
//     queue.PopFront();
//   }
//
// Any number of producers, one consumer. A producer takes a number with one
// atomic addition and owns the slot that belongs to it; it publishes the slot
// with one store. A push writes nothing else that is shared, because its cost
// is the cache lines that move between cores:
//   - a slot holds the whole task, so nothing is allocated. A task of up to
//     48 bytes stays in the first of the slot's lines, and the label, which
//     only an error needs, in lines that the worker does not touch;
//   - producers prefetch the lines of coming slots;
//   - a worker that has caught up polls again only after a while, so that it
//     does not take away the very line that is being written;
//   - a push wakes the worker only if it sleeps, which a flag beside the
//     number shows.
//
// Progress is one counter, `completed`. A thread that waits, for room or for an
// operation, spins for some microseconds and then sleeps until the counter
// reaches the number that it has registered.

#ifndef D2L_COMMON_DEVICE_CPU_TASK_QUEUE_H_
#define D2L_COMMON_DEVICE_CPU_TASK_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "common/base/event_count.h"
#include "common/base/spin_wait.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"

namespace d2l {

class TaskQueue {
 public:
  static constexpr std::size_t kInlineBytes = 112;

  enum class Kind : unsigned char {
    kCompute,  // uses a core of the device
    kBeside,   // a copy or a callback: uses no core
    kAlways,   // of PushAlways: uses no core
  };

  // What a slot's function is called to do.
  enum class Action {
    kRun,
    kSkip,  // the stream is poisoned
  };

  struct alignas(64) Slot {
    Kind kind() const {
      return Kind(published.load(std::memory_order_relaxed) % kKinds);
    }

    // (The task's number + 1) * kKinds + its kind, once the slot holds it.
    std::atomic<std::uint64_t> published{0};
    // Runs or skips the task and destroys it; false if it was skipped.
    bool (*run)(void* payload, Action action, const FailurePtr& poison);
    alignas(16) unsigned char payload[kInlineBytes];
    OpLabel label;
  };
  static_assert(sizeof(Slot) == 256, "four cache lines");

  // bound: how many tasks may be queued; at least 1.
  explicit TaskQueue(std::int64_t bound);
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Enqueues a callable `void()` of at most kInlineBytes that moves without
  // throwing. Waits while the queue is full. Returns the task's number,
  // counted from 0.
  template <Kind kKind = Kind::kCompute, typename F>
  std::uint64_t Push(const OpLabel& label, F task) {
    return PushSlot<kKind>(label, std::move(task));
  }

  // Enqueues a callable `void(const FailurePtr&)` that is called even if the
  // stream is poisoned, with the failure or with null.
  template <typename F>
  std::uint64_t PushAlways(const OpLabel& label, F task) {
    return PushSlot<Kind::kAlways>(label, std::move(task));
  }

  // How many tasks have been enqueued (their numbers are below it).
  std::uint64_t pushed() const { return tail_.load(std::memory_order_seq_cst); }
  // How many are done.
  std::uint64_t completed() const {
    return completed_.load(std::memory_order_acquire);
  }
  // Blocks until completed() >= count. Not on the consumer.
  void WaitUntilCompleted(std::uint64_t count);
  // Its two halves. Polls for a while, and returns whether completed() >= count
  // then; after a microsecond help() is called between polls, and if it returns
  // true, the while begins again.
  bool PollUntilCompleted(std::uint64_t count, absl::FunctionRef<bool()> help);
  void SleepUntilCompleted(std::uint64_t count) {
    SleepUntilCompleted(count, /*wake_at=*/count);
  }

  // --- the consumer's side ---

  // The next task; null if there is none yet.
  Slot* TryFront() {
    Slot& slot = slots_[head_ & mask_];
    return Holds(slot, head_) ? &slot : nullptr;
  }
  // The next task after some microseconds, or less if a thread waits or `stop`
  // returns true; null if there is none then. Near the end of the queue, worker
  // and producer slow each other down by a half, since the lines that one of
  // them writes are those that the other's processor fetches ahead.
  template <typename Stop>
  Slot* TryFrontLater(Stop stop) {
    // Computed in advance: otherwise a round trip takes 0.1 us longer.
    Slot& slot = slots_[head_ & mask_];
    const std::uint64_t number = head_;
    for (int i = 0; i < kPausesBetweenLooks && !stop(); ++i) {
      Pause();
      if (hurry_.load(std::memory_order_relaxed)) {
        hurry_.store(false, std::memory_order_relaxed);
        break;
      }
    }
    return Holds(slot, number) ? &slot : nullptr;
  }
  // Waits for the next task; null once Stop was called and all tasks are done.
  // polls: for a while, before it sleeps.
  Slot* WaitForFront(bool polls = true);
  Slot* Front() {
    Slot* const slot = TryFront();
    return slot != nullptr ? slot : WaitForFront();
  }
  // The number of the task at the front.
  std::uint64_t front_number() const { return head_; }
  // Marks the task at the front as done.
  void PopFront();

  // Call it after the last Push.
  void Stop();

  // When a producer has woken the consumer last (NowNanos), with the first task
  // that came while it slept.
  std::int64_t woken_at() const {
    return woken_at_.load(std::memory_order_relaxed);
  }
  // How often the consumer has been woken from sleep.
  std::int64_t wakeups() const {
    return wakeups_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint64_t kKinds = 4;
  // Ten microseconds or so, as long as a hundred operations take.
  static constexpr int kPausesBetweenLooks = 256;

  static bool Holds(const Slot& slot, std::uint64_t number) {
    return slot.published.load(std::memory_order_acquire) / kKinds ==
           number + 1;
  }

  // The function of a slot that holds an F.
  template <typename F, bool kAlways>
  static bool RunSlot(void* payload, Action action, const FailurePtr& poison) {
    // Destroys the task also if it throws.
    struct Holder {
      F* task;
      ~Holder() { task->~F(); }
    } holder{std::launder(static_cast<F*>(payload))};
    if constexpr (kAlways) {
      (*holder.task)(poison);
    } else {
      if (action == Action::kSkip) return false;
      (*holder.task)();
    }
    return true;
  }

  template <Kind kKind, typename F>
  std::uint64_t PushSlot(const OpLabel& label, F task) {
    // Between taking a number and publishing its slot nothing may throw, or
    // the worker would wait for that slot for ever.
    static_assert(sizeof(F) <= kInlineBytes && alignof(F) <= 16,
                  "a task must fit its slot: put what is large on the heap");
    static_assert(std::is_nothrow_move_constructible_v<F>,
                  "a task must move without throwing");
    const std::uint64_t number = tail_.fetch_add(1, std::memory_order_seq_cst);
    const bool asleep = asleep_.load(std::memory_order_seq_cst);
    if (number - known_completed_.load(std::memory_order_acquire) >= bound_) {
      WaitForRoom(number);
    }
    Slot& slot = slots_[number & mask_];
    PrefetchForWrite(&slots_[(number + kPrefetchDistance) & mask_]);
    new (slot.payload) F(std::move(task));
    slot.run = &RunSlot<F, kKind == Kind::kAlways>;
    slot.label = label;
    slot.published.store((number + 1) * kKinds + std::uint64_t(kKind),
                         std::memory_order_release);
    if (asleep) Wake();
    // The task is an event's, which a thread will wait for.
    if constexpr (kKind == Kind::kAlways) {
      hurry_.store(true, std::memory_order_relaxed);
    }
    return number;
  }

  static constexpr std::uint64_t kPrefetchDistance = 16;

  static void PrefetchForWrite(void* address) {
#if defined(__x86_64__)
    // __builtin_prefetch(p, 1) is a prefetch for reading unless the compiler
    // may use this instruction, which every x86-64 processor accepts. Fetched
    // for reading, the line is requested twice: 40 ns a push, not 20.
    asm volatile("prefetchw %0" : : "m"(*static_cast<char*>(address)));
#else
    __builtin_prefetch(address, 1);
#endif
  }

  static Slot* MapSlots(std::uint64_t count);
  void WaitForRoom(std::uint64_t number);
  void SleepUntilCompleted(std::uint64_t count, std::uint64_t wake_at);
  void Wake();

  const std::uint64_t bound_;
  const char* const full_;  // the name of a wait for room
  const std::uint64_t mask_;
  Slot* const slots_;

  // Written by producers.
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  // Written rarely, read by producers. The first of them that finds the
  // consumer asleep wakes it.
  alignas(64) std::atomic<std::uint64_t> known_completed_{0};
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stopped_{false};
  // A thread waits, or will: an idle consumer should poll now.
  std::atomic<bool> hurry_{false};
  std::atomic<std::int64_t> woken_at_{0};
  // Written by the consumer.
  alignas(64) std::atomic<std::uint64_t> completed_{0};
  std::uint64_t head_ = 0;
  std::atomic<std::int64_t> wakeups_{0};
  // The smallest number that a thread sleeps for.
  alignas(64) std::atomic<std::uint64_t> wake_at_{~std::uint64_t{0}};

  EventCount consumer_;
  EventCount waiters_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_TASK_QUEUE_H_
