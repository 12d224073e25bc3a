#include "common/device/cpu/cpu_stream.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/device/cpu/cpu_event.h"
#include "common/device/listener.h"
#include "common/device/memory.h"

namespace d2l {

CpuStream::CpuStream(Device device, int index, const StreamOptions& options,
                     std::shared_ptr<Team> team)
    : Stream(device, index),
      queue_(options.max_queued_operations),
      team_(std::move(team)),
      worker_([this] { Work(); }) {}

CpuStream::~CpuStream() {
  queue_.Stop();
  worker_.join();
  ReportUnnoticed();
}

void CpuStream::Abandon() {
  // Sequentially consistent: an event for which a worker goes on waiting was
  // recorded before this, and its stream will complete it.
  abandoned_.store(true, std::memory_order_seq_cst);
}

void CpuStream::Retire() {
  queue_.WaitUntilCompleted(queue_.pushed());
  ReportUnnoticed();
  worker_.detach();
}

void CpuStream::ReportUnnoticed() {
  if (FailurePtr failure = UnreportedFailure()) {
    std::fprintf(stderr,
                 "Nobody noticed that %s. Call Synchronize before the end, to "
                 "see such an error in time.\n",
                 failure->ToString().c_str());
  }
}

void CpuStream::ThrowCalledFromWork(const char* what) const {
  throw std::logic_error(
      absl::StrCat("[", what,
                   "] called from work that runs on a stream; a task or a host "
                   "callback must not call into streams (here ",
                   name(), "), or the queue could wait for itself"));
}

Event CpuStream::Record() {
  if (internal::on_worker_thread) ThrowCalledFromWork("Record");
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
  if (internal::on_worker_thread) ThrowCalledFromWork("Wait");
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
  if (internal::StreamHasListeners()) {
    internal::ReportStream(
        {StreamRecord::Kind::kCopy, this, requested_at, 0, dst, src, bytes});
  }
  const std::uint64_t number =
      Enqueue(OpLabel("copy", requested_at), [dst, src, bytes] {
        if (bytes > 0) std::memcpy(dst, src, bytes);
      });
  const void* host = kind == CopyKind::kHostToDevice   ? src
                     : kind == CopyKind::kDeviceToHost ? dst
                                                       : nullptr;
  const bool pageable = host != nullptr && !IsPinned(host, bytes);
  if (pageable || LaunchBlocking()) Finish(number, "copy", requested_at);
}

void CpuStream::HostCallback(std::function<void()> callback,
                             SourceLocation requested_at) {
  if (internal::StreamHasListeners()) {
    internal::ReportStream(
        {StreamRecord::Kind::kHostCallback, this, requested_at});
  }
  const std::uint64_t number =
      Enqueue(OpLabel("host_callback", requested_at),
              [callback = std::move(callback)] { callback(); });
  if (LaunchBlocking()) Finish(number, "host_callback", requested_at);
}

std::int64_t CpuStream::QueuedOperations() {
  const std::uint64_t done = queue_.completed();
  return static_cast<std::int64_t>(queue_.pushed() - done);
}

void CpuStream::WaitFor(std::uint64_t number) {
  if (internal::on_worker_thread) ThrowCalledFromWork("WaitFor");
  queue_.WaitUntilCompleted(number + 1);
}

FailurePtr CpuStream::FailureOf(std::uint64_t number) {
  if (!ever_failed()) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const FailedInterval& interval : failed_) {
    if (interval.first <= number && number < interval.end) {
      return interval.failure;
    }
  }
  return nullptr;
}

void CpuStream::Synchronize(SourceLocation noticed_at) {
  if (internal::on_worker_thread) ThrowCalledFromWork("Synchronize");
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
  ThrowIfFailed(*this, number, noticed_in, noticed_at);
}

void CpuStream::Report(std::uint64_t before, const char* noticed_in,
                       SourceLocation noticed_at) {
  FailurePtr failure;
  std::int64_t skipped = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failed_.empty()) return;
    FailedInterval& last = failed_.back();
    if (last.end != kOpen || last.first >= before) return;
    // Who only waits may end as quietly as the program does; who reads what
    // was skipped is told by FailureOf.
    if (last.end_of_program) return;
    // The worker decides to skip under this lock, so what it has skipped is
    // below the end, and everything from the end on will run.
    last.end = queue_.pushed();
    failure = last.failure;
    skipped = last.skipped;
  }
  throw AsyncError(std::move(failure), noticed_in, noticed_at, skipped);
}

FailurePtr CpuStream::UnreportedFailure() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (failed_.empty()) return nullptr;
  const FailedInterval& last = failed_.back();
  if (last.end != kOpen || last.end_of_program) return nullptr;
  return last.failure;
}

void CpuStream::Work() {
  internal::on_worker_thread = true;
  internal::current_team = team_.get();
  while (TaskQueue::Slot* slot = queue_.Front()) {
    if (poison_ != nullptr) ClearPoisonIfReported();
    RunSlot(*slot);
    queue_.PopFront();
  }
}

void CpuStream::RunSlot(TaskQueue::Slot& slot) {
  if (poison_ == nullptr && abandoned_.load(std::memory_order_acquire)) {
    Poison(MakeFailure(slot.label, nullptr,
                       "it was skipped, because the program is ending"),
           /*end_of_program=*/true);
  }
  try {
    const bool ran = slot.run(
        slot.payload,
        poison_ == nullptr ? TaskQueue::Action::kRun : TaskQueue::Action::kSkip,
        poison_is_end_ ? nullptr : poison_);
    if (!ran) {
      std::lock_guard<std::mutex> lock(mutex_);
      ++failed_.back().skipped;
    }
  } catch (const AsyncError& error) {
    // A wait for a poisoned event: pass on the failure it carries.
    Poison(error.shared_failure());
  } catch (...) {
    Poison(MakeFailure(slot.label, std::current_exception(),
                       WhatOf(std::current_exception())));
  }
}

FailurePtr CpuStream::MakeFailure(const OpLabel& label,
                                  std::exception_ptr cause,
                                  std::string what) const {
  auto failure = std::make_shared<Failure>();
  failure->operation = label.name();
  failure->number = queue_.front_number();
  failure->stream = name();
  failure->requested_at = label.requested_at();
  failure->requested_by = label.requested_by();
  failure->inputs = label.InputsToString();
  failure->cause = std::move(cause);
  failure->what = std::move(what);
  return failure;
}

void CpuStream::Poison(FailurePtr failure, bool end_of_program) {
  poison_ = failure;
  poison_is_end_ = end_of_program;
  std::lock_guard<std::mutex> lock(mutex_);
  failed_.push_back(
      {queue_.front_number(), kOpen, 0, std::move(failure), end_of_program});
  set_ever_failed();
}

void CpuStream::ClearPoisonIfReported() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (queue_.front_number() >= failed_.back().end) poison_ = nullptr;
}

}  // namespace d2l
