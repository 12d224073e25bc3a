#include "common/device/stream.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/device/listener.h"
#include "common/device/memory/host_memory.h"

namespace d2l {
namespace {

// True once the program is ending; and on the thread that ends it.
std::atomic<bool> program_ending{false};
thread_local bool ends_program = false;
// Far longer than the end of a program takes.
constexpr std::chrono::seconds kLongestEnd{10};

constexpr char kForked[] =
    "called in a forked child, which has none of the threads that work for "
    "the parent's streams; fork before the first use of a device, or call exec "
    "in the child";

// Reports a request before it is carried out, except for a Record.
void Tell(StreamRecord record, const Event& event = Event()) {
  if (!internal::StreamHasListeners()) return;
  record.event = event.id();
  internal::ReportStream(record);
}

// Tells the listeners of an operation, which gets their stamps.
void Tell(StreamRecord record, const FailureLedger& ledger, OpLabel& label) {
  if (!internal::StreamHasListeners()) return;
  OpStamps* stamps = nullptr;
  record.number = ledger.pushed();
  record.stamps = &stamps;
  internal::ReportStream(record);
  label.set_stamps(stamps);
}

// As an event behind a failed operation, but of no stream. It has the type that
// nothing need wait for.
class PoisonedEvent final : public EventState {
 public:
  explicit PoisonedEvent(FailurePtr failure)
      : EventState(DeviceType::kCpu), failure_(std::move(failure)) {}
  bool Query() override { return true; }
  void Block() override {}
  FailurePtr failure() override { return failure_; }
  double NanosSince(EventState&) override { return 0; }

 private:
  const FailurePtr failure_;
};

// Called at a stream's end. `failure` may be null.
void PrintUnnoticed(const FailurePtr& failure) {
  if (failure == nullptr) return;
  std::fprintf(stderr,
               "Unreported asynchronous error: %s. Call Synchronize before the "
               "end of the program to catch it.\n",
               failure->ToString().c_str());
}

}  // namespace

namespace internal {
namespace {

bool LaunchBlockingFromEnvironment() {
  const char* value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value != nullptr && std::string(value) == "1";
}

}  // namespace

std::atomic<bool> launch_blocking{LaunchBlockingFromEnvironment()};

void WatchForks() {
  static const int watching = pthread_atfork(nullptr, nullptr, [] {
    enqueue_mode = kForkedChild;
    forked_child.store(true, std::memory_order_relaxed);
  });
  static_cast<void>(watching);
}

void RefuseCall(const Stream& stream, const char* what) {
  const char* why = kForked;
  if (enqueue_mode == kOnWorker) {
    why =
        "called from work that runs on a stream; a task or a host callback "
        "must not call into streams, or the queue could wait for itself";
  } else if (enqueue_mode == kCapturing) {
    why =
        "called while a StreamCapture captures this thread's tasks; it can be "
        "a part of no captured program, so call it before or behind";
  }
  throw std::logic_error(
      absl::StrCat("[", what, "] ", why, " (here ", stream.name(), ")"));
}

void ThrowIfForked(const char* what) {
  if (!forked_child.load(std::memory_order_relaxed)) return;
  throw std::logic_error(absl::StrCat("[", what, "] ", kForked));
}

}  // namespace internal

Stream::Stream(Device device, int index,
               std::shared_ptr<FailureLedger> failures)
    : device_(device), index_(index), failures_(std::move(failures)) {
  internal::WatchForks();
}

Stream::~Stream() {
  if (Stream* const copies = copy_stream()) copies->receiver_.store(nullptr);
  if (internal::forked_child.load(std::memory_order_relaxed)) return;
  PrintUnnoticed(UnreportedFailure());
}

std::string Stream::NameOf(Device device, int index) {
  if (index == 0) return device.ToString();
  return absl::StrCat(device.ToString(), "/", index);
}

Event Stream::Record() {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Record");
  Event event(DoRecord());
  Tell({StreamRecord::Kind::kRecord, this, {}}, event);
  if (!internal::order_listeners.empty()) {
    internal::ReportOrder(OrderRecord::Kind::kRecord, this, event.state().get(),
                          failures_->pushed());
  }
  return event;
}

void Stream::Wait(const Event& event, SourceLocation requested_at) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Wait");
  Tell({StreamRecord::Kind::kWait, this, requested_at}, event);
  const std::shared_ptr<EventState>& state = event.state();
  if (state == nullptr) return;
  // A GPU cannot wait for a CPU stream.
  if (device_.type() == DeviceType::kCuda &&
      state->type() != DeviceType::kCuda) {
    state->Block();
  }
  if (state->Query() && state->failure() == nullptr) {
    TellWait(*state);
  } else {
    EnqueueWait(state, requested_at);
  }
  if (Stream* const copies = copy_stream()) {
    const internal::PartOfRequest part;
    copies->Wait(event, requested_at);
  }
}

void Stream::TellWait(EventState& event) {
  if (internal::order_listeners.empty()) return;
  internal::ReportOrder(OrderRecord::Kind::kWait, this, &event,
                        failures_->pushed());
}

std::uint64_t Stream::EnqueueWait(const std::shared_ptr<EventState>& event,
                                  SourceLocation requested_at) {
  TellWait(*event);
  const OpLabel label("wait", requested_at);
  const std::uint64_t number = DoWait(label, event);
  AfterEnqueue(number, label, /*waits=*/false);
  return number;
}

std::uint64_t Stream::WaitForCopy(const Event& copied,
                                  SourceLocation requested_at) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Wait");
  return EnqueueWait(copied.state(), requested_at);
}

void Stream::SetCopyStream(Stream& copies) {
  failures_->SetFollower(copies.failures_.get());
  // From here on Wait tells it of events; those before are before this one.
  copy_stream_.store(&copies);
  copies.Wait(Record());
  copies.receiver_.store(this);
}

void Stream::CopyAsync(void* dst, const void* src, std::size_t bytes,
                       CopyKind kind, SourceLocation requested_at) {
  const void* host = kind == CopyKind::kHostToDevice   ? src
                     : kind == CopyKind::kDeviceToHost ? dst
                                                       : nullptr;
  const bool pageable = host != nullptr && !IsPinned(host, bytes);
  if (internal::enqueue_mode && (pageable || !CapturesCopies())) {
    internal::RefuseCall(*this, "CopyAsync");
  }
  OpLabel label("copy", requested_at);
  Tell({StreamRecord::Kind::kCopy, this, requested_at, 0, dst, src, bytes},
       *failures_, label);
  AfterEnqueue(DoCopy(label, dst, src, bytes, kind, pageable), label, pageable);
}

void Stream::HostCallback(std::function<void()> callback,
                          SourceLocation requested_at) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "HostCallback");
  OpLabel label("host_callback", requested_at);
  Tell({StreamRecord::Kind::kHostCallback, this, requested_at}, *failures_,
       label);
  AfterEnqueue(DoHostCallback(label, std::move(callback)), label,
               /*waits=*/false);
}

void Stream::AfterEnqueue(std::uint64_t number, const OpLabel& label,
                          bool waits) {
  failures_->ThrowIfLost(label.name(), label.requested_at());
  if (waits || LaunchBlocking()) {
    Finish(number, label.name(), label.requested_at());
  }
}

bool Stream::Query() {
  const std::uint64_t end = failures_->pushed();
  if (QueuedOperations() > 0) return false;
  internal::TellOrder(OrderRecord::Kind::kHostSawIdle, this, nullptr, end);
  return true;
}

void Stream::Synchronize(SourceLocation noticed_at) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Synchronize");
  const internal::WaitScope scope("stream_synchronize", noticed_at);
  const std::uint64_t end = failures_->pushed();
  AwaitDone(end);
  internal::TellOrder(OrderRecord::Kind::kHostSawIdle, this, nullptr, end);
  failures_->Report(end, "Synchronize", noticed_at);
}

void Stream::WaitFor(std::uint64_t number) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "WaitFor");
  AwaitDone(number + 1);
  internal::TellOrder(OrderRecord::Kind::kHostWait, this, nullptr, number + 1);
}

void Stream::Finish(std::uint64_t number, const char* noticed_in,
                    SourceLocation noticed_at) {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Finish");
  AwaitDone(number + 1);
  internal::TellOrder(OrderRecord::Kind::kHostWait, this, nullptr, number + 1);
  if (!ever_failed()) return;
  failures_->Report(number + 1, noticed_in, noticed_at);
  FailurePtr failure = FailureOf(number);
  if (failure == nullptr) return;
  if (failure->end_of_program && !ends_program &&
      program_ending.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(kLongestEnd);  // see BeginEndOfProgram
  }
  throw AsyncError(std::move(failure), noticed_in, noticed_at, -1);
}

std::function<void()> Stream::Stall() {
  if (internal::enqueue_mode) internal::RefuseCall(*this, "Stall");
  return DoStall();
}

void Stream::Drain() {
  AwaitDone(failures_->pushed());
  PrintUnnoticed(UnreportedFailure());
  DoDrain();
}

void CheckResult(Stream& writer, std::uint64_t number, Stream& user,
                 const char* noticed_in, SourceLocation noticed_at) {
  if (!writer.ever_failed()) return;
  FailurePtr failure = writer.FailureOf(number);
  if (failure == nullptr || failure->end_of_program) return;
  if (!writer.IsUnreported(number)) {
    throw AsyncError(std::move(failure), noticed_in, noticed_at, -1);
  }
  if (&writer == &user) return;  // which skips the work
  const internal::PartOfRequest part;
  user.Wait(Event(std::make_shared<PoisonedEvent>(std::move(failure))),
            noticed_at);
}

void BeginEndOfProgram() {
  ends_program = true;
  program_ending.store(true, std::memory_order_relaxed);
}

void SetLaunchBlocking(bool on) {
  internal::launch_blocking.store(on, std::memory_order_relaxed);
}

}  // namespace d2l
