// Stream: a queue of work on one device, as c10::Stream and cudaStream_t are.
//
//   stream.CopyAsync(dst, src, bytes, CopyKind::kHostToDevice);
//   stream.HostCallback([&] { done = true; });
//   stream.Synchronize();  // until then, nothing above need have happened
//
// Order: first in, first out. Two streams are not ordered, unless one waits for
// an event of the other. Those of one device share its cores (device.h).
//
// Thread-safety: any thread may enqueue at any time; the operations of one
// thread keep their order. A queue is bounded: a thread that enqueues on a full
// one waits until half of it is free (back-pressure). Work that runs on a
// stream must not call into streams, as in CUDA's host functions; that throws
// std::logic_error.
//
// Processes: a child that is forked after the first stream was made has none of
// the threads that do the work. Its calls into streams throw std::logic_error,
// and its exit waits for nothing that the parent had queued. Fork before the
// first use of a device, or call exec in the child.
//
// Errors: an operation that fails *poisons* its stream. Later operations are
// skipped; events complete but carry the failure, which poisons the streams
// that wait for them. The first call that waits for such work (Synchronize, of
// an event too, a read, a copy from or to pageable memory) throws the failure
// as an AsyncError. That reports it, and the stream runs again from then on.
// A call that only enqueues throws no failure that is still to be reported:
// what it enqueues is skipped. So the call that throws, and what runs behind
// it, do not depend on when the failure becomes known. Each stream that a
// failure reaches reports it once.
//
// Results of failed and skipped operations stay marked (FailureOf). Reading
// them throws every time, as does computing with them once their failure has
// been reported.
//
// Copies from other devices to fresh memory (To) run on a stream beside this
// one, its copy stream: behind the source's work and the events that this
// stream has been told to wait for, but not behind its other work. This stream
// waits for each copy, which it treats as its own work: it gets the failure of
// a copy, and once it has thrown one, its copies run again, too.
//
// Stream holds the contract: it refuses invalid calls, notifies listeners,
// detects pageable memory, waits under launch blocking, and throws late errors,
// whose ledger is in failed_intervals.h. A back end does the rest in the
// functions DoRecord, DoWait, …, and launches work in its own way:
// CpuStream::Enqueue, CudaStream::Launch. The operations of tensors are in
// common/kernels.

#ifndef D2L_COMMON_DEVICE_STREAM_H_
#define D2L_COMMON_DEVICE_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/event.h"
#include "common/device/failed_intervals.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"

namespace d2l {

enum class CopyKind { kHostToDevice, kDeviceToHost, kDeviceToDevice };

class Stream {
 public:
  // Waits for everything enqueued. Prints a failure that was never reported.
  virtual ~Stream();

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device device() const { return device_; }
  // The number among the streams of the device; 0 is the default stream.
  int index() const { return index_; }
  // "cpu:0" for the default stream, "cpu:0/1" for a further one.
  std::string name() const { return NameOf(device_, index_); }

  // ---- For programs.

  // The point after everything enqueued so far.
  Event Record();

  // Work enqueued from here on starts after `event`. On a CPU stream its worker
  // waits, not the caller. A CUDA stream waits on the GPU for a CUDA event; for
  // an event of a CPU stream the caller waits.
  void Wait(const Event& event,
            SourceLocation requested_at = SourceLocation::Current());

  // Copies bytes. Asynchronous between devices and to or from pinned host
  // memory (PinnedMemory in device_table.h). From or to any other host memory
  // it returns when the copy is done, on every back end, and throws AsyncError
  // if the copy was skipped.
  void CopyAsync(void* dst, const void* src, std::size_t bytes, CopyKind kind,
                 SourceLocation requested_at = SourceLocation::Current());

  // Calls `callback` on a thread of the back end, in order. It is skipped,
  // and destroyed, on a poisoned stream. An exception it throws is the
  // failure of this operation.
  void HostCallback(std::function<void()> callback,
                    SourceLocation requested_at = SourceLocation::Current());

  // How many operations are not done yet: enqueued, or waiting for room in the
  // queue.
  virtual std::int64_t QueuedOperations() = 0;

  // True if everything enqueued so far is done. A program may use the results
  // then, as after Synchronize; QueuedOperations is only a figure.
  bool Query();

  // Waits until everything enqueued so far is done. Throws AsyncError if any
  // of it failed or was skipped and that was not reported yet.
  void Synchronize(SourceLocation noticed_at = SourceLocation::Current());

  // ---- For tensors, profilers and the device table. Programs read a tensor,
  // take a profile or use a StreamStall instead.

  // Waits until operation `number` is done. Throws no AsyncError: see
  // FailureOf.
  void WaitFor(std::uint64_t number);

  // Waits until operation `number` is done, to read its result. Throws
  // AsyncError if it failed or was skipped, every time; as after Synchronize,
  // the stream then runs again. noticed_in: the reader's name, for the message.
  void Finish(std::uint64_t number, const char* noticed_in,
              SourceLocation noticed_at);

  // If nothing is queued behind operation `number`: copies its result, at most
  // 8 bytes, to the host, with one wait for the operation and the copy. The
  // bytes are valid if Finish then throws nothing. Returns false if other work
  // is queued behind it, or if a copy is as quick.
  virtual bool ReadBehind(std::uint64_t /*number*/, void* /*to*/,
                          const void* /*from*/, std::size_t /*bytes*/,
                          SourceLocation /*requested_at*/) {
    return false;
  }

  // Why operation `number`, which has completed, did not do its work; null if
  // it did. Kept for the stream's life, see FailedIntervals.
  FailurePtr FailureOf(std::uint64_t number) {
    return failures_->FailureOf(number);
  }
  // True if that failure is still to be reported.
  bool IsUnreported(std::uint64_t number) {
    return failures_->IsUnreported(number);
  }
  // False if nothing has ever failed here: a cheap check before FailureOf.
  bool ever_failed() const { return failures_->ever_failed(); }

  // What is enqueued from here on waits until `bytes` have crossed the links
  // from each of these nodes of the topology to another, behind what is
  // enqueued already. No effect without links (cpu/virtual_timing.h).
  virtual void Transfer(const std::vector<int>& /*from*/, int /*to*/,
                        std::size_t /*bytes*/) {}

  // The failure that Synchronize would throw; null if there is none.
  FailurePtr UnreportedFailure() { return failures_->Unreported(); }

  // For copies between devices: Wait, but for this stream's work alone and not
  // for copies to it, and for an event of the same back end. Returns the
  // number of the wait, which fails if the event is poisoned.
  std::uint64_t WaitForCopy(const Event& copied, SourceLocation requested_at);
  // This stream's copy stream; null if it has none yet. See CopyStream in
  // device_table.h, which makes it and calls the second function.
  Stream* copy_stream() const { return copy_stream_.load(); }
  void SetCopyStream(Stream& copies);
  // The stream whose copies this one makes; else this one.
  const Stream& receiver() const {
    const Stream* const receiver = receiver_.load();
    return receiver != nullptr ? *receiver : *this;
  }

  // For StreamStall. Returns once the stream is idle and stalled. The function
  // it returns ends the stall; any thread may call it, any number of times,
  // while the stream lives.
  std::function<void()> Stall();

  // For the end of the process: from Shutdown on, the back end skips the work
  // that it can skip and marks its results as failed; events complete. Call it
  // on all streams before any Drain: one may wait for another's event.
  virtual void Shutdown() = 0;
  // After Shutdown: waits until everything enqueued so far is done or skipped,
  // and prints a failure that was never reported. Work that threads and static
  // objects enqueue later is skipped, even if its inputs were, and waits for it
  // return; so the stream must never be destroyed. A thread that reads a
  // skipped result is blocked until the process ends, see BeginEndOfProgram.
  void Drain();

 protected:
  // failures: the ledger, which may outlive the stream.
  Stream(Device device, int index, std::shared_ptr<FailureLedger> failures);

  static std::string NameOf(Device device, int index);
  const std::shared_ptr<FailureLedger>& failures() const { return failures_; }

  // The back end's part of the functions of these names, called once the call
  // has been checked and reported to listeners. They return the operation's
  // number. pageable: the copy is from or to host memory that is not pinned.
  virtual std::shared_ptr<EventState> DoRecord() = 0;
  virtual std::uint64_t DoWait(const OpLabel& label,
                               const std::shared_ptr<EventState>& event) = 0;
  virtual std::uint64_t DoCopy(const OpLabel& label, void* dst, const void* src,
                               std::size_t bytes, CopyKind kind,
                               bool pageable) = 0;
  virtual std::uint64_t DoHostCallback(const OpLabel& label,
                                       std::function<void()> callback) = 0;
  virtual std::function<void()> DoStall() = 0;
  virtual void DoDrain() = 0;

  // Waits until the operations below `end` are done.
  virtual void AwaitDone(std::uint64_t end) = 0;
  // True if this thread's copies are captured now, and not enqueued.
  virtual bool CapturesCopies() const { return false; }

 private:
  // Called after each request: throws if the device is lost, and calls Finish
  // if the request waits or launch blocking is on.
  void AfterEnqueue(std::uint64_t number, const OpLabel& label, bool waits);
  // Reports the wait to listeners; and enqueues it.
  void TellWait(EventState& event);
  std::uint64_t EnqueueWait(const std::shared_ptr<EventState>& event,
                            SourceLocation requested_at);

  const Device device_;
  const int index_;
  const std::shared_ptr<FailureLedger> failures_;
  std::atomic<Stream*> copy_stream_{nullptr};
  std::atomic<Stream*> receiver_{nullptr};  // null unless a copy stream
};

// For a call that enqueues work on `user` that needs the result of operation
// `number` of `writer`. If that is known to have failed or to have been
// skipped, and its failure has been reported: throws AsyncError. If it is still
// to be reported: poisons `user` with it, as an event behind the operation
// would. Does neither at the end of the program, when all work is skipped.
// Waits for room in a queue at most. noticed_in: the caller's name, for the
// message.
void CheckResult(Stream& writer, std::uint64_t number, Stream& user,
                 const char* noticed_in, SourceLocation noticed_at);

// Launch blocking: while on, every call that enqueues an operation (not a
// Record) waits until it is done and throws its failure, so that errors surface
// at the call that made them. Slow; for debugging. Initially on if the
// environment variable CUDA_LAUNCH_BLOCKING is 1. Any thread may call it.
void SetLaunchBlocking(bool on);

// Call on the thread that ends the program, which calls exit or has returned
// from main, before Shutdown. From then on other threads that read a skipped
// result wait for the process to end, for ten seconds at most, and then get
// their AsyncError. There is no value for them to read, and an exception that
// they do not catch would abort the program instead of returning main's exit
// code.
void BeginEndOfProgram();

namespace internal {
extern std::atomic<bool> launch_blocking;

// Why this thread may not enqueue, or may not do so directly. Inline and
// constant-initialised, so that reading it is one load and not a call.
enum EnqueueMode : unsigned char {
  kMayEnqueue = 0,
  kOnWorker,     // it runs a stream's work
  kForkedChild,  // of a process that has streams
  kCapturing,    // a StreamCapture takes its tasks
};
inline thread_local EnqueueMode enqueue_mode = kMayEnqueue;

// This process is the child of one that had streams when it forked.
inline std::atomic<bool> forked_child{false};

// For the constructors of streams: sets the two above in forked children.
void WatchForks();
// Throws std::logic_error: this thread may not call `what` of `stream`.
[[noreturn]] void RefuseCall(const Stream& stream, const char* what);
// For waits that would last for ever in a forked child: throws there.
void ThrowIfForked(const char* what);
}  // namespace internal

inline bool LaunchBlocking() {
  return internal::launch_blocking.load(std::memory_order_relaxed) &&
         internal::enqueue_mode == internal::kMayEnqueue;
}

// Turns launch blocking on or off while it lives.
class LaunchBlockingGuard {
 public:
  explicit LaunchBlockingGuard(bool on) { SetLaunchBlocking(on); }
  ~LaunchBlockingGuard() { SetLaunchBlocking(before_); }
  LaunchBlockingGuard(const LaunchBlockingGuard&) = delete;
  LaunchBlockingGuard& operator=(const LaunchBlockingGuard&) = delete;

 private:
  const bool before_ = LaunchBlocking();
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_STREAM_H_
