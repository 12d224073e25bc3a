#include "common/device/cpu/cpu_stream.h"

#include <sys/prctl.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/event_count.h"
#include "common/base/machine.h"
#include "common/base/spin_wait.h"

namespace d2l {
namespace {

// How long a stream goes on computing while another waits for a core: far
// longer than a wake-up takes.
constexpr std::int64_t kTurnNanos = 1'000'000;

// The state behind an event of a CPU stream. See Event.
class CpuEventState final : public EventState {
 public:
  // ledger: of the stream that records it; null if it carries no failure.
  explicit CpuEventState(std::shared_ptr<FailureLedger> ledger = nullptr)
      : EventState(DeviceType::kCpu), ledger_(std::move(ledger)) {}

  // Its number in the stream; set before the event is shown to anyone.
  void set_number(std::uint64_t number) { number_ = number; }

  // Marks the point as reached. failure: null, or what poisons the event.
  void Complete(FailurePtr failure, std::int64_t now) {
    failure_ = std::move(failure);
    nanos_ = now;
    done_.store(true, std::memory_order_seq_cst);
    completed_.Notify();
  }

  bool Query() override { return done_.load(std::memory_order_acquire); }
  void Block() override {
    const auto done = [this] { return done_.load(std::memory_order_seq_cst); };
    if (SpinWait::Until(kSpinNanos, done, /*keeps_core=*/true)) return;
    internal::ThrowIfForked("Wait");
    // The wait is bounded by the work before the event, which is queued.
    completed_.Sleep(done);
  }
  FailurePtr failure() override { return failure_; }
  void MarkReported() override {
    std::int64_t skipped = 0;
    ledger_->Take(number_ + 1, &skipped);
  }
  double NanosSince(EventState& begin) override {
    return static_cast<double>(nanos_ -
                               static_cast<CpuEventState&>(begin).nanos_);
  }
  // When the point was reached, on the stream's clock. Once it has been.
  std::int64_t nanos() const { return nanos_; }

 private:
  // See task_queue.cc; here the waiter is often another stream's worker, which
  // should not keep a core that the awaited work could use.
  static constexpr std::int64_t kSpinNanos = 10'000;

  const std::shared_ptr<FailureLedger> ledger_;
  std::uint64_t number_ = 0;
  std::atomic<bool> done_{false};
  // Written once, before done_.
  FailurePtr failure_;
  std::int64_t nanos_ = 0;
  EventCount completed_;
};

// The stream whose operation, with a clock, this thread runs.
thread_local CpuStream* timed_stream = nullptr;

bool IsTimed() {
  return internal::active_timing.load(std::memory_order_acquire) != nullptr;
}

class Failures final : public FailureLedger {
 public:
  explicit Failures(const TaskQueue& queue) : queue_(&queue) {}
  std::uint64_t pushed() const override {
    return queue_ == nullptr ? pushed_at_end_ : queue_->pushed();
  }
  // The queue will be destroyed. Events of the stream may outlive it.
  void EndStream() {
    MutexLock lock(mutex_);
    pushed_at_end_ = queue_->pushed();
    queue_ = nullptr;
  }

 private:
  const TaskQueue* queue_;
  std::uint64_t pushed_at_end_ = 0;
};

}  // namespace

CpuStream::CpuStream(Device device, int index, const StreamOptions& options,
                     std::shared_ptr<ThreadPool> pool)
    : Stream(device, index, std::make_shared<Failures>(queue_)),
      queue_(options.max_queued_operations),
      pool_(pool != nullptr ? std::move(pool)
                            : std::make_shared<ThreadPool>(1)),
      beside_(options.beside),
      worker_(StartThread(name(), [this] { Work(); })) {}

CpuStream::~CpuStream() {
  if (internal::forked_child.load(std::memory_order_relaxed)) {
    worker_.detach();  // it is the parent's
    return;
  }
  queue_.Stop();
  worker_.join();
  static_cast<Failures&>(*failures()).EndStream();
}

void CpuStream::Shutdown() {
  // Sequentially consistent: an event for which a worker goes on waiting was
  // recorded before this, and its stream will complete it.
  shut_down_.store(true, std::memory_order_seq_cst);
  MutexLock lock(mutex_);
  stall_ended_.NotifyAll();
}

std::int64_t CpuStream::QueuedOperations() {
  const std::uint64_t done = queue_.completed();
  return static_cast<std::int64_t>(queue_.pushed() - done);
}

std::shared_ptr<EventState> CpuStream::DoRecord() {
  auto state = std::make_shared<CpuEventState>(failures());
  state->set_number(queue_.PushAlways(OpLabel("record"),
                                      [this, state](const FailurePtr& poison) {
                                        state->Complete(poison, Now());
                                      }));
  return state;
}

std::uint64_t CpuStream::DoWait(const OpLabel& label,
                                const std::shared_ptr<EventState>& event) {
  // Waits on a poisoned stream, too: work enqueued once the failure has been
  // reported must be ordered as requested.
  return queue_.PushAlways(label, [this, event](const FailurePtr& poison) {
    if (shut_down_.load(std::memory_order_seq_cst)) return;
    if (!event->Query()) ReleaseCore();
    event->Block();
    if (IsTimed()) {
      const auto* const state = dynamic_cast<CpuEventState*>(event.get());
      if (state != nullptr) clock_.AdvanceTo(state->nanos());
    }
    FailurePtr failure = event->failure();
    if (failure != nullptr && poison == nullptr) {
      throw AsyncError(std::move(failure), "Stream::Wait", {}, -1);
    }
  });
}

std::uint64_t CpuStream::DoCopy(const OpLabel& label, void* dst,
                                const void* src, std::size_t bytes,
                                CopyKind kind, bool /*pageable*/) {
  const int node = device().index();
  if (kind == CopyKind::kHostToDevice) Transfer({kHostNode}, node, bytes);
  if (kind == CopyKind::kDeviceToHost) Transfer({node}, kHostNode, bytes);
  return Enqueue<TaskQueue::Kind::kBeside>(label, [dst, src, bytes] {
    if (bytes > 0) std::memcpy(dst, src, bytes);
  });
}

std::uint64_t CpuStream::DoHostCallback(const OpLabel& label,
                                        std::function<void()> callback) {
  return Enqueue<TaskQueue::Kind::kBeside>(
      label, [this, callback = std::move(callback)] {
        callback();
        CatchUp();
      });
}

void CpuStream::AwaitDone(std::uint64_t end) {
  if (pool_->cores() == 1 || internal::forked_child.load()) {
    return queue_.WaitUntilCompleted(end);
  }
  const auto done = [this, end] { return queue_.completed() >= end; };
  {
    ThreadPool::Guest guest(*pool_, this);
    if (queue_.PollUntilCompleted(end, [&] { return guest.Help(done); })) {
      return;
    }
  }
  queue_.SleepUntilCompleted(end);
}

void CpuStream::Transfer(const std::vector<int>& from, int to,
                         std::size_t bytes) {
  const internal::ActiveTiming* const timing = internal::active_timing.load();
  if (timing == nullptr || !timing->links.has_value()) return;
  Enqueue<TaskQueue::Kind::kBeside>(
      OpLabel("transfer"), [nodes = std::vector<int>(from), to, bytes] {
        if (timed_stream != nullptr) {
          timed_stream->clock_.Cross(nodes, to, bytes);
        }
      });
}

std::function<void()> CpuStream::DoStall() {
  struct Gate {
    CpuEventState reached;
    bool open = false;  // guarded by the stream's mutex_
  };
  auto gate = std::make_shared<Gate>();
  // Stalls a poisoned stream, too, which would skip a host callback.
  queue_.PushAlways(OpLabel("stall"), [this, gate](const FailurePtr&) {
    ReleaseCore();
    gate->reached.Complete(nullptr, Now());
    MutexLock lock(mutex_);
    while (!gate->open && !shut_down_.load(std::memory_order_relaxed)) {
      stall_ended_.Wait(mutex_);
    }
  });
  gate->reached.Block();
  return [this, gate] {
    MutexLock lock(mutex_);
    gate->open = true;
    stall_ended_.NotifyAll();
  };
}

void CpuStream::Work() {
  internal::enqueue_mode = internal::kOnWorker;
  prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds; see SleepUntilClock
  if (pool_->cores() > 1) internal::SetCurrentPool(pool_.get(), this);
  clock_.AdvanceTo(NowNanos());  // a slot may be there: then it was never idle
  for (;;) {
    TaskQueue::Slot* slot = queue_.TryFront();
    const bool idle = slot == nullptr;
    if (idle && has_core_) {
      slot = queue_.TryFrontLater([this] { return pool_->core_wanted(); });
    }
    if (slot == nullptr) {
      ReleaseCore();
      slot = WaitForFront();
      if (slot == nullptr) return;
    } else if (idle) {
      CatchUp();
    }
    // FailureOf is null once the failure has been reported.
    if (poison_ != nullptr)
      poison_ = failures()->FailureOf(queue_.front_number());
    RunSlot(*slot);
    queue_.PopFront();
    if (pool_->core_wanted()) EndTurn();
  }
}

TaskQueue::Slot* CpuStream::WaitForFront() {
  const std::int64_t idle_since = NowNanos();
  TaskQueue::Slot* const slot = queue_.WaitForFront(/*polls=*/!IsTimed());
  if (IsTimed()) {
    // On the clock work begins when it is enqueued, however late this thread
    // gets a core. If it polled, it would not know when that was.
    const std::int64_t woken = queue_.woken_at();
    clock_.AdvanceTo(woken > idle_since ? woken : NowNanos());
  }
  return slot;
}

void CpuStream::ChangeCore(TaskQueue::Kind kind) {
  if (poison_ != nullptr) return;  // it will be skipped
  if (kind == TaskQueue::Kind::kBeside) ReleaseCore();
  if (kind == TaskQueue::Kind::kCompute) {
    pool_->TakeCore();
    has_core_ = true;
    // Streams that share one core do not run at the same time.
    if (pool_->cores() == 1) clock_.AdvanceTo(pool_->core_clock.load());
  }
}

void CpuStream::ReleaseCore() {
  if (has_core_) {
    pool_->core_clock.store(clock_.nanos());
    pool_->ReleaseCore();
  }
  has_core_ = false;
  turn_ends_ = 0;
}

void CpuStream::EndTurn() {
  const std::int64_t now = NowNanos();
  if (turn_ends_ == 0) turn_ends_ = now + kTurnNanos;
  if (now >= turn_ends_) ReleaseCore();
}

void CpuStream::RunSlot(TaskQueue::Slot& slot) {
  const TaskQueue::Kind kind = slot.kind();
  if ((kind == TaskQueue::Kind::kCompute) != has_core_) ChangeCore(kind);
  if (poison_ == nullptr && shut_down_.load(std::memory_order_acquire)) {
    Poison(MakeSkippedAtEnd(slot.label, queue_.front_number(), name()));
  }
  internal::ActiveTiming* const timing =
      internal::active_timing.load(std::memory_order_acquire);
  if (timing != nullptr) clock_.AdvanceTo(timing->begin);
  if (timing != nullptr && poison_ == nullptr &&
      kind != TaskQueue::Kind::kAlways) {
    RunTimed(*timing, slot);
  } else {
    RunTask(slot);
  }
}

void CpuStream::RunTask(TaskQueue::Slot& slot) {
  try {
    const bool ran = slot.run(
        slot.payload,
        poison_ == nullptr ? TaskQueue::Action::kRun : TaskQueue::Action::kSkip,
        poison_);
    if (!ran) failures()->Skip(queue_.front_number());
  } catch (...) {
    Poison(MakeFailure(slot.label, queue_.front_number(), name(),
                       std::current_exception()));
  }
}

void CpuStream::RunTimed(internal::ActiveTiming& timing,
                         TaskQueue::Slot& slot) {
  timed_stream = this;
  clock_.Begin(timing, /*computes=*/slot.kind() == TaskQueue::Kind::kCompute &&
                           !beside_);
  RunTask(slot);
  EndTimed();
}

void CpuStream::EndTimed() {
  if (timed_stream == nullptr) return;  // EndOfOp has ended it
  clock_.EndWork();
  SleepUntilClock();
  clock_.End();
  timed_stream = nullptr;
}

void CpuStream::CatchUp() {
  if (IsTimed()) clock_.AdvanceTo(NowNanos());
}

std::int64_t CpuStream::Now() const {
  return IsTimed() ? clock_.nanos() : NowNanos();
}

std::int64_t CpuStream::BeginOfOp() {
  return timed_stream != nullptr ? timed_stream->clock_.begin() : NowNanos();
}

std::int64_t CpuStream::EndOfOp() {
  CpuStream* const stream = timed_stream;
  if (stream == nullptr) return NowNanos();
  stream->EndTimed();
  return stream->clock_.nanos();
}

void CpuStream::SleepUntilClock() {
  // A sleep of less costs more than it is worth; the next one is longer then.
  constexpr std::int64_t kShortestSleep = 60'000;
  MutexLock lock(mutex_);
  while (!shut_down_.load(std::memory_order_relaxed)) {
    const std::int64_t left = clock_.nanos() - NowNanos();
    if (left < kShortestSleep) return;
    stall_ended_.WaitFor(mutex_, std::chrono::nanoseconds(left));
  }
}

void CpuStream::Poison(FailurePtr failure) {
  poison_ = failure;
  failures()->Fail(queue_.front_number(), std::move(failure));
}

}  // namespace d2l
