#include "common/device/cuda/stream/cuda_stream.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/timer.h"
#include "common/device/cuda/cuda_errors.h"
#include "common/device/cuda/stream/cuda_graph.h"
#include "common/device/listener.h"
#include "common/device/nvtx_range.h"

namespace d2l {
namespace {

void RunCallback(void* log) { static_cast<StreamLog*>(log)->RunCallback(); }

// When a GPU's context is lost, CUDA may still call an enqueued callback, so
// the log is never destroyed.
void KeepForEver(std::shared_ptr<StreamLog> log) {
  static std::mutex& mutex = *new std::mutex;
  static auto& kept = *new std::vector<std::shared_ptr<StreamLog>>;
  const std::lock_guard<std::mutex> lock(mutex);
  kept.push_back(std::move(log));
}

// The room that a host function takes in CUDA's queue, in addition to that of
// any operation: 57 of them, with an event each, have been seen to fill it
// (forums.developer.nvidia.com/t/220629).
constexpr std::uint64_t kMoreOfHostFunction = 16;

// Releases the streams that wait for the word to reach `hold`.
void Release(std::uint32_t* released, std::uint32_t hold) {
  std::uint32_t now = __atomic_load_n(released, __ATOMIC_RELAXED);
  while (now < hold &&
         !__atomic_compare_exchange_n(released, &now, hold, /*weak=*/true,
                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

}  // namespace

CudaStream::CudaStream(CudaGpu& gpu, Device device, int index,
                       const StreamOptions& options)
    : Stream(device, index,
             std::make_shared<StreamLog>(NameOf(device, index),
                                         options.max_queued_operations)),
      log_(std::static_pointer_cast<StreamLog>(failures())),
      gpu_(gpu),
      api_(gpu.api()),
      bound_(static_cast<std::uint64_t>(options.max_queued_operations)),
      launch_bound_(static_cast<std::uint64_t>(options.max_queued_launches)),
      // A full queue waits until half of it is done, so it needs a checkpoint.
      checkpoint_every_(
          std::clamp<std::uint64_t>(bound_ / 2, 1, kCheckpointEvery)) {
  int error = gpu_.MakeCurrent();
  if (error == 0) error = gpu_.NewStreamMemory(&memory_);
  if (error == 0) error = api_.CreateStream(&stream_);
  if (error != 0) {
    if (memory_ != nullptr) gpu_.ReturnStreamMemory(memory_);
    throw std::runtime_error(
        absl::StrCat("[stream] CUDA cannot make a stream, ", name(), ": ",
                     api_.ErrorText(error)));
  }
  gpu_.Clock();  // read while no stream that it may share a queue with is
                 // stalled
  log_->UseRecords(memory_->records);
}

CudaStream::~CudaStream() {
  AwaitDone(log_->pushed());
  log_->UseRecords(nullptr);
  // Without its context the GPU has nothing to release.
  if (!is_running()) {
    KeepForEver(log_);
    return;
  }
  gpu_.MakeCurrent();
  library_state_.reset();
  if (recorded_ != nullptr) api_.DestroyStream(recorded_);
  api_.DestroyStream(stream_);
  gpu_.ReturnStreamMemory(memory_);
}

void CudaStream::Shutdown() {
  log_->Shutdown();
  Release(&memory_->released, std::numeric_limits<std::int32_t>::max());
}

void CudaStream::DoDrain() {
  log_->End();
  log_->DropPending();
}

// ---- Enqueueing.

std::uint64_t CudaStream::Enqueue(const OpLabel& label, bool may_take_long,
                                  Issue issue) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Enqueue");
  Lock lock(*this);
  AwaitRoom(lock);
  return EnqueueLocked(label, may_take_long, issue);
}

std::uint64_t CudaStream::EnqueueLocked(const OpLabel& label,
                                        bool may_take_long, Issue issue) {
  if (!is_running()) return log_->Begin(label).number;
  int error = gpu_.MakeCurrent();
  if (may_take_long && last_checkpoint_ < log_->pushed()) RecordCheckpoint();
  const StreamLog::Ticket ticket = log_->Begin(label);
  const std::uint64_t kernels = internal::kernels_launched;
  internal::long_kernel_launched = false;
  std::exception_ptr thrown;
  try {
    if (error == 0) error = issue(ticket);
  } catch (...) {
    thrown = std::current_exception();
    error = api_.TakeLaunchError();
  }
  launches_ += std::max<std::uint64_t>(1, internal::kernels_launched - kernels);
  // If no checkpoint can be made, a wait only lasts longer than necessary.
  if (ticket.number + 1 - last_checkpoint_ >= checkpoint_every_ ||
      (internal::long_kernel_launched && last_checkpoint_ <= ticket.number)) {
    RecordCheckpoint();
  }
  // If the GPU is lost, every later call throws; otherwise the stream goes on.
  const bool lost = error != 0 && log_->NoteError(api_, error);
  if (thrown == nullptr && (error == 0 || lost)) return ticket.number;
  throw AsyncError(
      log_->FailLaunch(
          ticket.number,
          thrown != nullptr
              ? WhatOf(thrown)
              : LaunchFailureText(error, api_.ErrorText(error),
                                  gpu_.capability(), gpu_.built_archs()),
          thrown),
      "the launch", label.requested_at(), -1);
}

void CudaStream::AwaitRoom(Lock& lock) {
  while (OperationsAreFull() || LaunchesAreFull()) {
    Poll();
    const bool operations = OperationsAreFull();
    if (!operations && !LaunchesAreFull()) return;
    // A thread woken for a single free place would soon wait again.
    std::uint64_t end = log_->pushed();
    if (operations) {
      end = log_->completed() + std::max<std::uint64_t>(1, bound_ / 2);
    } else if (!checkpoints_.empty()) {
      end = checkpoints_[checkpoints_.size() / 2].end;
    }
    const Checkpoint half = CheckpointBehind(end - 1);
    waiting_for_room_.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    {
      const std::uint64_t full = operations ? bound_ : launch_bound_;
      const internal::WaitScope scope(internal::QueueFullName(full),
                                      SourceLocation(), full);
      Await(half);
    }
    lock.lock();
    waiting_for_room_.fetch_sub(1, std::memory_order_relaxed);
  }
}

std::uint64_t CudaStream::LaunchErased(const OpLabel& label,
                                       LaunchFunction launch) {
  if (CudaGraph* const graph = CudaGraph::RecordedOn(*this)) {
    const Lock lock(*this);  // for library_state_
    graph->Add(label, launch);
    return 0;
  }
  const std::uint64_t number = Enqueue(
      label, /*may_take_long=*/false, [&](const StreamLog::Ticket& ticket) {
        const CudaLaunch to = {stream_, ticket.errors, gpu_.multiprocessors(),
                               this};
        const NvtxRange range(label.name());
        if (label.stamps() != nullptr) {
          return LaunchTimed({ticket.number, label.stamps(), nullptr, nullptr},
                             to, launch);
        }
        launch(to);
        return api_.TakeLaunchError();
      });
  log_->ThrowIfLost(label.name(), label.requested_at());
  if (LaunchBlocking()) AwaitDone(number + 1);
  return number;
}

int CudaStream::LaunchTimed(StreamLog::Timing timing, const CudaLaunch& to,
                            LaunchFunction launch) {
  // The operation begins when the one before is done. If that one has an event
  // and is not done yet, its event is used for both.
  if (!checkpoints_.empty() && checkpoints_.back().end == timing.number &&
      checkpoints_.back().event->timed() &&
      checkpoints_.back().event->Query() == kCudaNotReady) {
    timing.begin = checkpoints_.back().event;
  }
  const bool timed = timing.begin != nullptr ||
                     RecordEvent(/*timed=*/true, &timing.begin) == 0;
  launch(to);
  const int error = api_.TakeLaunchError();
  if (timed && error == 0 && RecordEvent(/*timed=*/true, &timing.end) == 0) {
    AddCheckpoint(timing.number + 1, timing.end);
    log_->AddTiming(std::move(timing));
  }
  return error;
}

std::shared_ptr<EventState> CudaStream::DoRecord() {
  std::shared_ptr<CudaEvent> event;
  // Throws nothing if the GPU is lost: it is called where blocks of memory are
  // released.
  const std::uint64_t number =
      Enqueue(OpLabel("record"), /*may_take_long=*/false,
              [&](const StreamLog::Ticket& ticket) {
                std::shared_ptr<CudaEvent> made;
                const int error = RecordEvent(/*timed=*/true, &made);
                if (error != 0) return error;
                AddCheckpoint(ticket.number + 1, made);
                event = std::move(made);
                return 0;
              });
  return std::make_shared<CudaEventState>(log_, number, std::move(event));
}

std::uint64_t CudaStream::DoWait(const OpLabel& label,
                                 const std::shared_ptr<EventState>& event) {
  return Enqueue(
      label, /*may_take_long=*/true, [&](const StreamLog::Ticket& ticket) {
        log_->AddWait(ticket.number, event);
        // An event of a CPU stream is done here, and poisoned.
        if (event->type() != DeviceType::kCuda) return 0;
        const CudaEvent* const cuda =
            static_cast<const CudaEventState&>(*event).event();
        return cuda == nullptr ? 0 : api_.WaitEvent(stream_, cuda->handle());
      });
}

std::uint64_t CudaStream::DoCopy(const OpLabel& label, void* dst,
                                 const void* src, std::size_t bytes,
                                 CopyKind kind, bool pageable) {
  // CUDA would wait within the call, and overwrite the program's memory even if
  // an operation before has failed; so wait here and check first.
  if (pageable) AwaitDone(log_->pushed());
  return Enqueue(
      label, /*may_take_long=*/false, [&](const StreamLog::Ticket& ticket) {
        if (pageable && log_->Skip(ticket.number)) return 0;
        if (bytes == 0) return 0;
        const int error = api_.CopyAsync(dst, src, bytes, stream_);
        // The call returns when the copy is done, so no event is needed.
        if (error == 0 && pageable && kind == CopyKind::kDeviceToHost) {
          log_->Complete(ticket.number + 1);
        }
        return error;
      });
}

std::uint64_t CudaStream::DoHostCallback(const OpLabel& label,
                                         std::function<void()> callback) {
  return Enqueue(
      label, /*may_take_long=*/true, [&](const StreamLog::Ticket& ticket) {
        log_->AddCallback(ticket.number, std::move(callback));
        const int error =
            api_.LaunchHostFunction(stream_, RunCallback, log_.get());
        if (error != 0) callback = log_->TakeLastCallback();
        launches_ += kMoreOfHostFunction;
        return error;
      });
}

std::function<void()> CudaStream::DoStall() {
  std::uint32_t hold = 0;
  // A checkpoint comes before the stall, so that earlier work can be awaited.
  const std::uint64_t number = Enqueue(
      OpLabel("stall"), /*may_take_long=*/true, [&](const StreamLog::Ticket&) {
        hold = ++holds_;
        return api_.WaitForWord(stream_, &memory_->released, hold);
      });
  log_->ThrowIfLost("stall", SourceLocation());
  AwaitDone(number);
  return [released = &memory_->released, hold] { Release(released, hold); };
}

bool CudaStream::ReadBehind(std::uint64_t number, void* to, const void* from,
                            std::size_t bytes, SourceLocation requested_at) {
  const std::unique_lock<std::mutex> reading(reading_, std::try_to_lock);
  if (internal::enqueue_mode || !reading.owns_lock()) return false;
  bool copied = false;
  std::uint64_t copy = 0;
  {
    const Lock lock(*this);
    const bool more_is_queued =
        log_->pushed() > number + 1 && log_->completed() < log_->pushed();
    if (more_is_queued || OperationsAreFull() || LaunchesAreFull()) {
      return false;
    }
    copy = EnqueueLocked(OpLabel("copy", requested_at), /*may_take_long=*/false,
                         [&](const StreamLog::Ticket& ticket) {
                           int error = api_.CopyAsync(memory_->number, from,
                                                      bytes, stream_);
                           std::shared_ptr<CudaEvent> done;
                           if (error == 0)
                             error = RecordEvent(/*timed=*/false, &done);
                           if (error == 0)
                             AddCheckpoint(ticket.number + 1, std::move(done));
                           copied = error == 0;
                           return error;
                         });
  }
  AwaitDone(copy + 1);
  if (!copied || !is_running()) return false;
  std::memcpy(to, memory_->number, bytes);
  return true;
}

// ---- Progress.

int CudaStream::RecordEvent(bool timed, std::shared_ptr<CudaEvent>* event) {
  int error = gpu_.NewEvent(timed, event);
  if (error == 0) error = api_.RecordEvent((*event)->handle(), stream_);
  ++launches_;
  return error;
}

int CudaStream::RecordCheckpoint() {
  std::shared_ptr<CudaEvent> event;
  int error = gpu_.MakeCurrent();
  if (error == 0) error = RecordEvent(/*timed=*/false, &event);
  if (error != 0) {
    log_->NoteError(api_, error);
    return error;
  }
  AddCheckpoint(log_->pushed(), std::move(event));
  return 0;
}

void CudaStream::AddCheckpoint(std::uint64_t end,
                               std::shared_ptr<CudaEvent> event) {
  last_checkpoint_ = end;
  checkpoints_.push_back({end, std::move(event), launches_});
}

void CudaStream::ForgetDone() {
  const std::uint64_t done = log_->completed();
  while (!checkpoints_.empty() && checkpoints_.front().end <= done) {
    launches_done_ = checkpoints_.front().launches;
    checkpoints_.pop_front();
  }
  if (done == log_->pushed()) launches_done_ = launches_;
}

void CudaStream::Poll() {
  for (ForgetDone(); !checkpoints_.empty(); ForgetDone()) {
    const Checkpoint& first = checkpoints_.front();
    if (!log_->Look(*first.event, first.end)) return;
  }
}

CudaStream::Checkpoint CudaStream::CheckpointBehind(std::uint64_t number) {
  ForgetDone();
  if (!is_running()) return {};
  if (last_checkpoint_ <= number) {
    const int error = RecordCheckpoint();
    if (error == 0) return checkpoints_.back();
    // From here on the stream's progress is unknown.
    log_->Lose(api_.ErrorText(error));
    return {};
  }
  const auto it = std::upper_bound(
      checkpoints_.begin(), checkpoints_.end(), number,
      [](std::uint64_t n, const Checkpoint& c) { return n < c.end; });
  return it == checkpoints_.end() ? Checkpoint() : *it;  // done meanwhile
}

void CudaStream::Await(const Checkpoint& checkpoint) {
  if (checkpoint.event == nullptr) return;
  log_->Await(*checkpoint.event, checkpoint.end);
  log_->DropPending();
}

void CudaStream::AwaitDone(std::uint64_t end) {
  const std::uint64_t count = std::min(end, log_->pushed());
  // Loops once, unless the stream is lost meanwhile.
  while (log_->completed() < count) {
    Checkpoint behind;
    {
      Lock lock(*this);
      behind = CheckpointBehind(count - 1);
    }
    Await(behind);
  }
}

std::int64_t CudaStream::QueuedOperations() {
  if (!internal::enqueue_mode) {
    Lock lock(*this);
    Poll();
    if (log_->completed() < log_->pushed() &&
        last_checkpoint_ < log_->pushed()) {
      RecordCheckpoint();
      Poll();
    }
  }
  const std::uint64_t done = log_->completed();
  return static_cast<std::int64_t>(log_->pushed() - done) +
         waiting_for_room_.load(std::memory_order_relaxed);
}

}  // namespace d2l
