// CpuStream: a stream of a virtual CPU device, one queue and one worker.
//
//   CpuStream& stream = static_cast<CpuStream&>(CurrentStream(device));
//   stream.Enqueue(OpLabel("axpy"), [=] { y[0] += a * x[0]; });
//
// The worker takes the tasks in order, on a thread of its own, so the stream is
// as asynchronous as a GPU's: enqueueing costs tens of nanoseconds, and the
// task runs later. Waiting for another stream's event blocks the worker. The
// work it waits for has a worker of its own, so this cannot deadlock, as it
// could with a shared pool of threads.
//
// "Host" is the calling thread; "pinned" is memory from PinnedMemory. Copies
// between pinned memory and the device are asynchronous, others are not, as
// on a GPU, although here all of it is the same DRAM.
//
// A task waits for one of its device's cores, and runs on it. While its stream
// has more tasks, the worker keeps the core, but at most a millisecond if
// another waits for one. Copies, host callbacks, and waits for events take no
// core.
//
// Contract: see Stream. Tasks own nothing: pass raw pointers, which stay
// valid as memory.h explains. A StreamCapture (stream_capture.h) captures the
// tasks of a thread instead of queueing them.

#ifndef D2L_COMMON_DEVICE_CPU_CPU_STREAM_H_
#define D2L_COMMON_DEVICE_CPU_CPU_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/device/backend.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/cpu/stream_capture.h"
#include "common/device/cpu/stream_clock.h"
#include "common/device/cpu/task_queue.h"
#include "common/device/cpu/virtual_timing.h"
#include "common/device/device.h"
#include "common/device/event.h"
#include "common/device/failed_intervals.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"

namespace d2l {

class CpuStream final : public Stream {
 public:
  // pool: the device's; null if this is the only stream of a device of one
  // core.
  CpuStream(Device device, int index, const StreamOptions& options,
            std::shared_ptr<ThreadPool> pool = nullptr);
  ~CpuStream() override;

  // Enqueues `task`, a callable `void()` of at most 96 bytes that moves without
  // throwing, and returns its number in the stream. An exception of the task
  // poisons the stream. Waits while the queue is full; with launch blocking,
  // until the task is done (Finish then says whether it failed). kBeside: the
  // task does not compute, and takes no core.
  template <TaskQueue::Kind kKind = TaskQueue::Kind::kCompute, typename F>
  std::uint64_t Enqueue(const OpLabel& label, F task) {
    if (internal::enqueue_mode) return Capture(label, std::move(task));
    OpStamps* const stamps = label.stamps();
    const std::uint64_t number =
        stamps == nullptr
            ? queue_.Push<kKind>(label, std::move(task))
            : queue_.Push<kKind>(label, Stamped<F>{stamps, std::move(task)});
    if (LaunchBlocking()) WaitFor(number);
    return number;
  }

  void Transfer(const std::vector<int>& from, int to,
                std::size_t bytes) override;
  std::int64_t QueuedOperations() override;
  // From here on tasks are skipped and stalls end. After Drain the worker goes
  // on skipping until the process ends.
  void Shutdown() override;

  // How often the worker has been woken from sleep.
  std::int64_t wakeups() const { return queue_.wakeups(); }

 private:
  template <typename F>
  struct Stamped {
    OpStamps* stamps;
    F task;
    void operator()() {
      struct AtEnd {
        OpStamps* stamps;
        ~AtEnd() { StampEnd(stamps, EndOfOp()); }
      } at_end{stamps};
      StampBegin(stamps, BeginOfOp());
      task();
    }
  };

  // For a thread that may not enqueue: passes the task to the thread's
  // StreamCapture or, if it has none, throws. Out of line, so that Enqueue
  // stays small.
  template <typename F>
  [[gnu::noinline, gnu::cold]] std::uint64_t Capture(const OpLabel& label,
                                                     F task) {
    StreamCapture* const capture = internal::CurrentStreamCapture();
    if (capture == nullptr) internal::RefuseCall(*this, "Enqueue");
    if constexpr (std::is_copy_constructible_v<F>) {
      // A captured task runs later, or never.
      const std::int64_t now = label.stamps() == nullptr ? 0 : NowNanos();
      StampBegin(label.stamps(), now);
      StampEnd(label.stamps(), now);
      OpLabel without_stamps = label;
      without_stamps.set_stamps(nullptr);
      return capture->Capture(*this, without_stamps, std::move(task));
    } else {
      internal::ThrowNotCapturable(label);
    }
  }

  std::shared_ptr<EventState> DoRecord() override;
  std::uint64_t DoWait(const OpLabel& label,
                       const std::shared_ptr<EventState>& event) override;
  std::uint64_t DoCopy(const OpLabel& label, void* dst, const void* src,
                       std::size_t bytes, CopyKind kind,
                       bool pageable) override;
  std::uint64_t DoHostCallback(const OpLabel& label,
                               std::function<void()> callback) override;
  std::function<void()> DoStall() override;
  void DoDrain() override { worker_.detach(); }
  void AwaitDone(std::uint64_t end) override;
  bool CapturesCopies() const override {
    return internal::CurrentStreamCapture() != nullptr;
  }

  // When the operation that runs on this thread has begun and ends, on the
  // stream's clock. The second returns at that time.
  static std::int64_t BeginOfOp();
  static std::int64_t EndOfOp();

  void Work();
  // The next task; null at the end.
  TaskQueue::Slot* WaitForFront();
  void RunSlot(TaskQueue::Slot& slot);
  // Worker only.
  void RunTask(TaskQueue::Slot& slot);
  // RunTask at the pace, and over the links, of `timing`.
  [[gnu::noinline, gnu::cold]] void RunTimed(internal::ActiveTiming& timing,
                                             TaskQueue::Slot& slot);
  void EndTimed();
  // Sets the clock forward to now, if there is a timing.
  void CatchUp();
  std::int64_t Now() const;
  void SleepUntilClock();
  // Takes or releases a core for a task, unless it will be skipped.
  [[gnu::noinline, gnu::cold]] void ChangeCore(TaskQueue::Kind kind);
  void ReleaseCore();
  void EndTurn();
  void Poison(FailurePtr failure);

  TaskQueue queue_;
  const std::shared_ptr<ThreadPool> pool_;
  const bool beside_;

  std::atomic<bool> shut_down_{false};
  Mutex mutex_;  // held to stall and to end stalls
  CondVar stall_ended_;

  // Worker only.
  FailurePtr poison_;
  bool has_core_ = false;
  std::int64_t turn_ends_ = 0;  // once another stream waits for a core
  internal::StreamClock clock_;

  std::thread worker_;  // last: it uses all of the above
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_CPU_STREAM_H_
