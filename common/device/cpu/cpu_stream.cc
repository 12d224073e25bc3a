#include "common/device/cpu/cpu_stream.h"

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "common/device/cpu/cpu_event.h"
#include "common/device/cpu/start_thread.h"
#include "common/device/listener.h"
#include "common/device/memory.h"

namespace d2l {
namespace {

// How long a stream computes on while another waits for a core: far longer
// than it takes to wake that one.
constexpr std::int64_t kTurnNanos = 1'000'000;

}  // namespace

CpuStream::CpuStream(Device device, int index, const StreamOptions& options,
                     std::shared_ptr<ThreadPool> pool)
    : Stream(device, index),
      queue_(options.max_queued_operations),
      pool_(pool != nullptr ? std::move(pool)
                            : std::make_shared<ThreadPool>(1)),
      failed_(name()),
      worker_(StartThread(name(), [this] { Work(); })) {
  internal::WatchForks();
}

CpuStream::~CpuStream() {
  if (internal::forked_child.load(std::memory_order_relaxed)) {
    worker_.detach();  // it is the parent's
    return;
  }
  queue_.Stop();
  worker_.join();
  internal::PrintUnnoticed(UnreportedFailure());
}

void CpuStream::Abandon() {
  // Sequentially consistent: an event for which a worker goes on waiting was
  // recorded before this, and its stream will complete it.
  abandoned_.store(true, std::memory_order_seq_cst);
  MutexLock lock(mutex_);
  stall_ended_.NotifyAll();
}

void CpuStream::Retire() {
  queue_.WaitUntilCompleted(queue_.pushed());
  internal::PrintUnnoticed(UnreportedFailure());
  worker_.detach();
}

Event CpuStream::Record() {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Record");
  auto state = std::make_shared<CpuEventState>();
  queue_.PushAlways(OpLabel("record"), [state](const FailurePtr& poison) {
    state->Complete(poison);
  });
  if (internal::StreamHasListeners()) {
    internal::ReportStream(
        {StreamRecord::Kind::kRecord, this, {}, state->id()});
  }
  return Event(std::move(state));
}

void CpuStream::Wait(const Event& event, SourceLocation requested_at) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Wait");
  if (internal::StreamHasListeners()) {
    internal::ReportStream(
        {StreamRecord::Kind::kWait, this, requested_at, event.id()});
  }
  if (event.state() == nullptr) return;
  if (event.Query() && event.failure() == nullptr) return;
  // On a poisoned stream too: what is enqueued once the failure has been
  // reported must find the order it asked for.
  const std::uint64_t number = queue_.PushAlways(
      OpLabel("wait", requested_at),
      [this, state = event.state()](const FailurePtr& poison) {
        if (abandoned_.load(std::memory_order_seq_cst)) return;
        if (!state->Query()) ReleaseCore();
        state->Block();
        FailurePtr failure = state->failure();
        if (failure != nullptr && poison == nullptr) {
          // The failure, not this wait, is what everyone behind wants to know.
          throw AsyncError(std::move(failure), "Stream::Wait", {}, -1);
        }
      });
  if (LaunchBlocking()) Finish(number, "wait", requested_at);
}

void CpuStream::CopyAsync(void* dst, const void* src, std::size_t bytes,
                          CopyKind kind, SourceLocation requested_at) {
  const void* host = kind == CopyKind::kHostToDevice   ? src
                     : kind == CopyKind::kDeviceToHost ? dst
                                                       : nullptr;
  const bool pageable = host != nullptr && !IsPinned(host, bytes);
  if (internal::enqueue_mode) {
    if (pageable) internal::RefuseCall(*this, "CopyAsync");
    internal::RequireSink(*this, "CopyAsync");
  }
  if (internal::StreamHasListeners()) {
    internal::ReportStream(
        {StreamRecord::Kind::kCopy, this, requested_at, 0, dst, src, bytes});
  }
  const std::uint64_t number = Enqueue<TaskQueue::Kind::kBeside>(
      OpLabel("copy", requested_at), [dst, src, bytes] {
        if (bytes > 0) std::memcpy(dst, src, bytes);
      });
  if (pageable || LaunchBlocking()) Finish(number, "copy", requested_at);
}

void CpuStream::HostCallback(std::function<void()> callback,
                             SourceLocation requested_at) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "HostCallback");
  if (internal::StreamHasListeners()) {
    internal::ReportStream(
        {StreamRecord::Kind::kHostCallback, this, requested_at});
  }
  const std::uint64_t number = Enqueue<TaskQueue::Kind::kBeside>(
      OpLabel("host_callback", requested_at),
      [callback = std::move(callback)] { callback(); });
  if (LaunchBlocking()) Finish(number, "host_callback", requested_at);
}

std::int64_t CpuStream::QueuedOperations() {
  const std::uint64_t done = queue_.completed();
  return static_cast<std::int64_t>(queue_.pushed() - done);
}

void CpuStream::WaitFor(std::uint64_t number) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "WaitFor");
  queue_.WaitUntilCompleted(number + 1);
}

FailurePtr CpuStream::FailureOf(std::uint64_t number) {
  if (!ever_failed()) return nullptr;
  MutexLock lock(mutex_);
  return failed_.FailureOf(number);
}

std::function<void()> CpuStream::Stall() {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Stall");
  struct Gate {
    CpuEventState reached;
    bool open = false;  // guarded by the stream's mutex_
  };
  auto gate = std::make_shared<Gate>();
  // Also on a poisoned stream, which would skip a host callback.
  queue_.PushAlways(OpLabel("stall"), [this, gate](const FailurePtr&) {
    ReleaseCore();
    gate->reached.Complete(nullptr);
    MutexLock lock(mutex_);
    while (!gate->open && !abandoned_.load(std::memory_order_relaxed)) {
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

void CpuStream::Synchronize(SourceLocation noticed_at) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Synchronize");
  const internal::WaitScope scope("stream_synchronize", noticed_at);
  const std::uint64_t pushed = queue_.pushed();
  queue_.WaitUntilCompleted(pushed);
  if (ever_failed()) Report(pushed, "Synchronize", noticed_at);
}

void CpuStream::Finish(std::uint64_t number, const char* noticed_in,
                       SourceLocation noticed_at) {
  WaitFor(number);
  if (!ever_failed()) return;
  Report(number + 1, noticed_in, noticed_at);
  if (FailurePtr failure = FailureOf(number)) {
    internal::ThrowToReader(std::move(failure), noticed_in, noticed_at);
  }
}

void CpuStream::Report(std::uint64_t before, const char* noticed_in,
                       SourceLocation noticed_at) {
  FailurePtr failure;
  std::int64_t skipped = 0;
  {
    MutexLock lock(mutex_);
    const FailedIntervals::Interval* const open = failed_.open();
    // A thread that only waits may end as quietly as the program does.
    if (open == nullptr || open->first >= before ||
        open->failure->end_of_program) {
      return;
    }
    failure = open->failure;
    skipped = open->skipped;
    // The worker decides to skip under this lock, so what it has skipped is
    // below the end, and everything from the end on will run.
    failed_.Close(queue_.pushed());
  }
  throw AsyncError(std::move(failure), noticed_in, noticed_at, skipped);
}

FailurePtr CpuStream::UnreportedFailure() {
  MutexLock lock(mutex_);
  const FailedIntervals::Interval* const open = failed_.open();
  if (open == nullptr || open->failure->end_of_program) return nullptr;
  return open->failure;
}

void CpuStream::Work() {
  internal::enqueue_mode = internal::kOnWorker;
  if (pool_->cores() > 1) internal::current_pool = pool_.get();
  for (;;) {
    TaskQueue::Slot* slot = queue_.TryFront();
    if (slot == nullptr && has_core_) {
      slot = queue_.TryFrontLater([this] { return pool_->core_wanted(); });
    }
    if (slot == nullptr) {
      ReleaseCore();
      slot = queue_.WaitForFront();
      if (slot == nullptr) return;
    }
    if (poison_ != nullptr) ClearPoisonIfReported();
    RunSlot(*slot);
    queue_.PopFront();
    if (pool_->core_wanted()) EndTurn();
  }
}

void CpuStream::ChangeCore(TaskQueue::Kind kind) {
  if (poison_ != nullptr) return;  // it will be skipped
  if (kind == TaskQueue::Kind::kBeside) ReleaseCore();
  if (kind == TaskQueue::Kind::kCompute) {
    pool_->TakeCore();
    has_core_ = true;
  }
}

void CpuStream::ReleaseCore() {
  if (has_core_) pool_->ReleaseCore();
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
  if (poison_ == nullptr && abandoned_.load(std::memory_order_acquire)) {
    Poison(MakeSkippedAtEnd(slot.label, queue_.front_number(), name()));
  }
  try {
    const bool ran = slot.run(
        slot.payload,
        poison_ == nullptr ? TaskQueue::Action::kRun : TaskQueue::Action::kSkip,
        poison_);
    if (!ran) {
      MutexLock lock(mutex_);
      ++failed_.Find(queue_.front_number())->skipped;
    }
  } catch (const AsyncError& error) {
    // A wait for a poisoned event: pass on the failure it carries.
    Poison(error.shared_failure());
  } catch (...) {
    Poison(MakeFailure(slot.label, queue_.front_number(), name(),
                       std::current_exception()));
  }
}

void CpuStream::Poison(FailurePtr failure) {
  poison_ = failure;
  MutexLock lock(mutex_);
  failed_.Open(queue_.front_number(), std::move(failure));
  set_ever_failed();
}

void CpuStream::ClearPoisonIfReported() {
  MutexLock lock(mutex_);
  if (failed_.Find(queue_.front_number()) == nullptr) poison_ = nullptr;
}

}  // namespace d2l
