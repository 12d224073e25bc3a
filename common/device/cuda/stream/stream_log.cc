#include "common/device/cuda/stream/stream_log.h"

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/device/cuda/cuda_errors.h"
#include "common/device/stream.h"

namespace d2l {
namespace {

// The smallest power of two that is at least n.
std::uint64_t RoundUp(std::int64_t n) {
  std::uint64_t size = 1;
  while (size < static_cast<std::uint64_t>(n)) size *= 2;
  return size;
}

}  // namespace

StreamLog::StreamLog(std::string stream_name, std::int64_t bound)
    : stream_name_(std::move(stream_name)),
      label_mask_(RoundUp(bound) - 1),
      // Not constructed: the unused part of a large ring takes no memory.
      labels_(static_cast<OpLabel*>(
          ::operator new((label_mask_ + 1) * sizeof(OpLabel)))) {}

StreamLog::~StreamLog() { ::operator delete(labels_); }

void StreamLog::UseRecords(ErrorRecord* records) {
  MutexLock lock(mutex_);
  records_ = records;
}

StreamLog::Ticket StreamLog::Begin(const OpLabel& label) {
  MutexLock lock(mutex_);
  const std::uint64_t number = pushed_.load(std::memory_order_relaxed);
  new (&labels_[number & label_mask_]) OpLabel(label);
  if (state() == State::kEnded) {
    Open(number, MakeSkippedAtEnd(label, number, stream_name_));
  }
  pushed_.store(number + 1, std::memory_order_release);
  return {number, {&records_[record_], number}};
}

void StreamLog::AddWait(std::uint64_t number,
                        std::shared_ptr<EventState> event) {
  MutexLock lock(mutex_);
  waits_.push_back({number, std::move(event)});
}

void StreamLog::AddGraph(std::uint64_t number, GraphLabels labels) {
  MutexLock lock(mutex_);
  graphs_.push_back({number, std::move(labels)});
}

void StreamLog::AddTiming(Timing timing) {
  MutexLock lock(timings_mutex_);
  timings_.push_back(std::move(timing));
}

void StreamLog::AddCallback(std::uint64_t number,
                            std::function<void()> callback) {
  MutexLock lock(mutex_);
  callbacks_.push_back({number, std::move(callback)});
}

std::function<void()> StreamLog::TakeLastCallback() {
  MutexLock lock(mutex_);
  if (callbacks_.empty()) return nullptr;  // the stream does not run any more
  std::function<void()> last = std::move(callbacks_.back().function);
  callbacks_.pop_back();
  return last;
}

void StreamLog::Complete(std::uint64_t done) {
  if (completed_.load(std::memory_order_acquire) >= done) return;
  {
    MutexLock lock(timings_mutex_);
    while (!timings_.empty() && timings_.front().number < done) {
      const Timing& timing = timings_.front();
      const auto clock = timing.begin->gpu().Clock();
      std::int64_t begin = 0;
      std::int64_t end = 0;
      if (clock != nullptr &&
          CudaGpu::HostNanos(*clock, *timing.begin, &begin) == 0 &&
          CudaGpu::HostNanos(*clock, *timing.end, &end) == 0) {
        StampBegin(timing.stamps, begin);
        StampEnd(timing.stamps, end);
      }
      timings_.pop_front();
    }
  }
  Resolve(done);
  std::uint64_t known = completed_.load(std::memory_order_relaxed);
  while (known < done && !completed_.compare_exchange_weak(
                             known, done, std::memory_order_acq_rel)) {
  }
}

bool StreamLog::Look(CudaEvent& event, std::uint64_t end) {
  const int error = event.Query();
  if (error == kCudaNotReady) return false;
  Conclude(event.gpu().api(), error, end);
  return true;
}

void StreamLog::Await(CudaEvent& event, std::uint64_t end) {
  Conclude(event.gpu().api(), event.Synchronize(), end);
}

void StreamLog::Conclude(CudaApi& api, int error, std::uint64_t end) {
  if (error == 0) {
    Complete(end);
  } else if (!NoteError(api, error)) {
    Lose(api.ErrorText(error));
  }
}

void StreamLog::Resolve(std::uint64_t done) {
  for (PendingWait wait; FirstWait(done, &wait); wait = {}) {
    // The wait is done, and so is its event. The log of the event's stream may
    // call this one in turn, about operations before this wait; those no longer
    // wait, so the recursion is at most as deep as there are streams.
    FailurePtr failure = wait.event->failure();
    MutexLock lock(mutex_);
    // Another thread may have handled this wait.
    if (waits_.empty() || waits_.front().number != wait.number) continue;
    waits_.pop_front();
    if (failure == nullptr) continue;
    OpenFromRecord(wait.number);
    Open(wait.number, std::move(failure));
  }
  MutexLock lock(mutex_);
  OpenFromRecord(done);
  while (!graphs_.empty() && graphs_.front().number < done) graphs_.pop_front();
}

bool StreamLog::FirstWait(std::uint64_t done, PendingWait* wait) {
  MutexLock lock(mutex_);
  if (waits_.empty() || waits_.front().number >= done) return false;
  *wait = waits_.front();
  return true;
}

void StreamLog::OpenFromRecord(std::uint64_t done) {
  if (records_ == nullptr) return;
  const ErrorRecord& record = records_[record_];
  const unsigned long long claimed =
      __atomic_load_n(&record.claimed_by, __ATOMIC_ACQUIRE);
  if (claimed == 0 || claimed > done) return;
  const std::uint64_t number = claimed - 1;
  if (IsConsequence(number)) return;
  Open(number, MakeFailure(LabelOf(record, number), number, stream_name_,
                           DeviceErrorText(record)));
}

const OpLabel& StreamLog::LabelOf(const ErrorRecord& record,
                                  std::uint64_t number) const {
  if (record.reported_by >= ErrorReporter::kInGraph) {
    for (const PendingGraph& graph : graphs_) {
      if (graph.number == number) {
        return (*graph.labels)[record.reported_by - ErrorReporter::kInGraph];
      }
    }
  }
  return LabelOf(number);
}

void StreamLog::RunCallback() {
  const absl::Cleanup leave =
      [mode = std::exchange(internal::enqueue_mode, internal::kOnWorker),
       outer = std::exchange(internal::in_cuda_callback, true)] {
        internal::enqueue_mode = mode;
        internal::in_cuda_callback = outer;
      };
  PendingCallback next;  // destroyed without the lock
  {
    MutexLock lock(mutex_);
    if (state() != State::kRunning || callbacks_.empty()) return;
    next = std::move(callbacks_.front());
    callbacks_.pop_front();
  }
  const std::uint64_t number = next.number;
  // All operations before it are done.
  Resolve(number);
  if (shut_down_.load(std::memory_order_acquire)) {
    MutexLock lock(mutex_);
    Open(number, MakeSkippedAtEnd(LabelOf(number), number, stream_name_));
  }
  if (Skip(number)) return;
  try {
    next.function();
  } catch (...) {
    const std::exception_ptr thrown = std::current_exception();
    MutexLock lock(mutex_);
    Open(number, MakeFailure(LabelOf(number), number, stream_name_, thrown));
  }
}

FailurePtr StreamLog::FailLaunch(std::uint64_t number, std::string what,
                                 std::exception_ptr cause) {
  MutexLock lock(mutex_);
  auto failure =
      MakeFailure(LabelOf(number), number, stream_name_, std::move(what));
  failure->cause = std::move(cause);
  if (failed_.open() == nullptr) {
    failed_.AddAlone(number, failure);
    set_ever_failed();
  }
  return failure;
}

void StreamLog::Lose(const std::string& error_text) {
  MutexLock lock(mutex_);
  if (state() != State::kRunning) return;
  const std::uint64_t first = completed_.load(std::memory_order_acquire);
  const std::uint64_t end = pushed_.load(std::memory_order_relaxed);
  const auto name = [](const OpLabel& label, std::uint64_t number) {
    std::string text = absl::StrCat(label.name(), " (operation ", number);
    if (label.requested_at().known()) {
      absl::StrAppend(&text, ", requested at ",
                      label.requested_at().ToString());
    }
    return text + ")";
  };
  const bool any = first < end;
  lost_ = MakeFailure(
      any ? LabelOf(first) : OpLabel("the GPU"), first, stream_name_,
      StickyErrorText(error_text, any ? name(LabelOf(first), first) : "",
                      any ? name(LabelOf(end - 1), end - 1) : ""));
  const FailedIntervals::Interval* const open = failed_.open();
  if (open != nullptr && open->first <= first && any) {
    failed_.Close(end);
    failed_.Open(end, lost_);
  } else {
    failed_.Open(first, lost_);
  }
  set_ever_failed();
  state_.store(State::kLost, std::memory_order_release);
}

bool StreamLog::NoteError(CudaApi& api, int error) {
  const CudaErrorKind kind = KindOf(error);
  if (kind == CudaErrorKind::kSticky) Lose(api.ErrorText(error));
  if (kind == CudaErrorKind::kUnloading) End();
  return state() != State::kRunning;
}

void StreamLog::End() {
  MutexLock lock(mutex_);
  if (state() != State::kRunning) return;
  state_.store(State::kEnded, std::memory_order_release);
}

void StreamLog::Drop() {
  std::deque<PendingCallback> callbacks;  // destroyed without the lock
  std::deque<PendingWait> waits;
  MutexLock lock(mutex_);
  callbacks.swap(callbacks_);
  waits.swap(waits_);
}

std::uint64_t StreamLog::Restart() {
  if (records_ == nullptr) return pushed();  // the stream is gone
  // All operations that used the other record are done.
  record_ = 1 - record_;
  __atomic_store_n(&records_[record_].claimed_by, 0ull, __ATOMIC_RELEASE);
  return pushed();
}

// ---- Events.

CudaEventState::CudaEventState(std::shared_ptr<StreamLog> log,
                               std::uint64_t number,
                               std::shared_ptr<CudaEvent> event)
    : EventState(DeviceType::kCuda),
      log_(std::move(log)),
      number_(number),
      event_(std::move(event)) {}

bool CudaEventState::Query() {
  if (log_->completed() > number_) return true;
  if (internal::in_cuda_callback) return false;
  if (!log_->Look(*event_, number_ + 1)) return false;
  log_->DropPending();
  return true;
}

void CudaEventState::Block() {
  if (log_->completed() > number_) return;
  if (internal::in_cuda_callback) {
    throw std::logic_error(
        "[event] waited for in a host callback of a CUDA stream, which may "
        "not wait for a GPU");
  }
  log_->Await(*event_, number_ + 1);
  log_->DropPending();
}

FailurePtr CudaEventState::failure() {
  // The operation is done, even if its stream has not noticed that yet.
  log_->Resolve(number_ + 1);
  return log_->FailureOf(number_);
}

void CudaEventState::MarkReported() {
  std::int64_t skipped = 0;
  log_->Take(number_ + 1, &skipped);
}

double CudaEventState::NanosSince(EventState& begin_state) {
  auto& begin = static_cast<CudaEventState&>(begin_state);
  if (&begin == this) return 0;
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  for (const CudaEventState* state : {this, &begin}) {
    if (state->event_ == nullptr ||
        state->log_->state() != StreamLog::State::kRunning) {
      return kUnknown;
    }
  }
  if (&event_->gpu() != &begin.event_->gpu()) {
    throw std::invalid_argument(
        "[elapsed_time] the events are of two GPUs, whose clocks cannot be "
        "compared");
  }
  float millis = 0;
  const int error = event_->MillisSince(*begin.event_, &millis);
  return error == 0 ? 1e6 * static_cast<double>(millis) : kUnknown;
}

}  // namespace d2l
