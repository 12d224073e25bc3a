// StreamLog: the state of one CUDA stream's operations: how many there are, how
// many are done, which failed, and why. CudaEventState: an event among them.
//
//   const StreamLog::Ticket ticket = log.Begin(label);  // operation 41
//   … the kernel is launched, and reports errors to ticket.errors …
//   log.Complete(42);                                   // 0 to 41 are done
//   if (FailurePtr failure = log.FailureOf(41)) …
//
// A GPU skips nothing: behind a failed operation kernels and copies run on,
// with garbage. So the log records from where on results are invalid. It learns
// that late, when operations are known to be done. An operation fails
//   - through a host callback that throws, which is known at once;
//   - through a kernel that writes an error to the stream's ErrorRecord, which
//     is read when the operation is done;
//   - through a wait for an event that turns out to be poisoned: checked when
//     the wait is done;
//   - at its launch: then it fails alone, since the call throws.
// The first of them opens a failed interval of the FailureLedger, which lasts
// until Report: all failures in between are only consequences.
//
// There are two error records. Operations enqueued after a report use the other
// one; no earlier operation can still write to it, since all that used it are
// done by then.
//
// The log keeps the label of every operation that is not known to be done, in
// a ring as large as the stream's bound, and those of the graphs that such
// operations launch.
//
// A log outlives its stream as long as an event needs it. Thread-safe, as
// stated: Begin and Add… need the stream's lock. Only Complete, Look and Await
// call CUDA. No lock is held during calls of another log, nor when a callback
// is destroyed, whose tensors call into streams and memory: see DropPending.

#ifndef D2L_COMMON_DEVICE_CUDA_STREAM_STREAM_LOG_H_
#define D2L_COMMON_DEVICE_CUDA_STREAM_STREAM_LOG_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/device/cuda/cuda_gpu.h"
#include "common/device/cuda/stream/error_record.h"
#include "common/device/event.h"
#include "common/device/failed_intervals.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"

namespace d2l {

class StreamLog final : public FailureLedger {
 public:
  StreamLog(std::string stream_name, std::int64_t bound);
  ~StreamLog() override;

  // records: two empty ones, for the operations from here on; null when the
  // stream is destroyed and everything is done.
  void UseRecords(ErrorRecord* records);

  enum class State {
    kRunning,
    kLost,   // the GPU's context is lost; see Lose
    kEnded,  // the program has ended; see End
  };
  State state() const { return state_.load(std::memory_order_acquire); }

  // How many operations there are, and how many are known to be done. If the
  // stream does not run, no operation completes any more: all count as done.
  std::uint64_t pushed() const override {
    return pushed_.load(std::memory_order_acquire);
  }
  std::uint64_t completed() const {
    return state() == State::kRunning
               ? completed_.load(std::memory_order_acquire)
               : pushed();
  }

  // ---- For enqueueing, one thread at a time.

  struct Ticket {
    std::uint64_t number;
    ErrorReporter errors;
  };
  // Takes the next number. Fewer than `bound` operations are pending.
  Ticket Begin(const OpLabel& label);

  // Operation `number` waits for `event`, and fails if that is poisoned.
  void AddWait(std::uint64_t number, std::shared_ptr<EventState> event);

  // Operation `number` launches a graph of operations with these labels, which
  // report with ErrorReporter::kInGraph plus their place in it.
  using GraphLabels = std::shared_ptr<const std::vector<OpLabel>>;
  void AddGraph(std::uint64_t number, GraphLabels labels);

  // Stamps that Complete writes.
  struct Timing {
    std::uint64_t number;
    OpStamps* stamps;
    std::shared_ptr<CudaEvent> begin;
    std::shared_ptr<CudaEvent> end;
  };
  void AddTiming(Timing timing);

  // Operation `number` calls `callback`. Callbacks run in the order in which
  // they are added. TakeLastCallback removes the last one, if CUDA rejects it.
  void AddCallback(std::uint64_t number, std::function<void()> callback);
  std::function<void()> TakeLastCallback();

  // ---- What happens to operations.

  // All operations below `done` are done: writes their stamps, finds out which
  // failed, and then raises completed().
  void Complete(std::uint64_t done);

  // Finds out only which operations below `done` failed. Resolve calls no CUDA,
  // so host callbacks can use it.
  void Resolve(std::uint64_t done);

  // Look polls `event`, which is behind all operations below `end`; false if it
  // is not done yet. Await waits for it. If CUDA returns another error, the
  // stream's progress is unknown, so the stream is lost.
  bool Look(CudaEvent& event, std::uint64_t end);
  void Await(CudaEvent& event, std::uint64_t end);

  // Runs or skips the next host callback; called on CUDA's thread.
  void RunCallback();

  // The launch of `number` failed. Returns the failure for the caller.
  FailurePtr FailLaunch(std::uint64_t number, std::string what,
                        std::exception_ptr cause);

  // The GPU's context is lost: all pending and later operations fail. Call
  // DropPending after Lose, Look, Await, NoteError and End.
  void Lose(const std::string& error_text);
  // Takes the error of a CUDA call for the stream, and calls Lose or End if it
  // is of that kind. Returns true if the stream does not run.
  bool NoteError(CudaApi& api, int error);

  // The program is ending: from now on host callbacks are skipped.
  void Shutdown() { shut_down_.store(true, std::memory_order_release); }
  // From now on nothing is enqueued; operations count as skipped and done.
  void End();
  // If the stream does not run any more: destroys the callbacks that will not
  // run, and the waits. Call it without locks.
  void DropPending() {
    if (state() != State::kRunning) Drop();
  }

 private:
  struct PendingWait {
    std::uint64_t number = 0;
    std::shared_ptr<EventState> event;
  };
  struct PendingGraph {
    std::uint64_t number = 0;
    GraphLabels labels;
  };
  struct PendingCallback {
    std::uint64_t number = 0;
    std::function<void()> function;
  };

  const OpLabel& LabelOf(std::uint64_t number) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return labels_[number & label_mask_];
  }
  // Of the operation that wrote the record, which may be one of a graph.
  const OpLabel& LabelOf(const ErrorRecord& record, std::uint64_t number) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Handles CUDA's answer on an event behind all operations below `end`.
  void Conclude(CudaApi& api, int error, std::uint64_t end);
  void Drop();
  // The first wait, if it is below `done`.
  bool FirstWait(std::uint64_t done, PendingWait* wait);
  // Marks the operation that the record names as failed, if it is below `done`.
  void OpenFromRecord(std::uint64_t done) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::uint64_t Restart() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string stream_name_;
  const std::uint64_t label_mask_;
  OpLabel* const labels_;  // by number

  std::atomic<std::uint64_t> pushed_{0};
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<State> state_{State::kRunning};
  std::atomic<bool> shut_down_{false};

  Mutex timings_mutex_;  // held while CUDA is called
  std::deque<Timing> timings_ ABSL_GUARDED_BY(timings_mutex_);

  ErrorRecord* records_ ABSL_GUARDED_BY(mutex_) = nullptr;
  int record_ ABSL_GUARDED_BY(mutex_) = 0;  // which of the two is in use
  std::deque<PendingWait> waits_ ABSL_GUARDED_BY(mutex_);
  std::deque<PendingGraph> graphs_ ABSL_GUARDED_BY(mutex_);
  std::deque<PendingCallback> callbacks_ ABSL_GUARDED_BY(mutex_);
};

// The state behind an event of a CUDA stream. See Event.
//
// Blocking spins or sleeps as the CUDA runtime decides (it spins if there are
// cores enough). A host callback of a CUDA stream must not call CUDA: there
// Query returns what is known already, and Block throws std::logic_error.
//
// Both may find that the GPU is lost, and then destroy the callbacks that will
// not run: call them without locks that tensors need.
class CudaEventState final : public EventState {
 public:
  // Operation `number` of the stream, which recorded `event`; null if the
  // stream does not run any more.
  CudaEventState(std::shared_ptr<StreamLog> log, std::uint64_t number,
                 std::shared_ptr<CudaEvent> event);

  // Null if there is nothing to wait for.
  const CudaEvent* event() const { return event_.get(); }

  bool Query() override;
  void Block() override;
  FailurePtr failure() override;
  void MarkReported() override;
  // By the GPU's clock. NaN if CUDA cannot be called any more. Throws
  // std::invalid_argument if the events are of two GPUs.
  double NanosSince(EventState& begin) override;

 private:
  const std::shared_ptr<StreamLog> log_;
  const std::uint64_t number_;
  const std::shared_ptr<CudaEvent> event_;
};

namespace internal {
// True on the thread that runs a host callback of a CUDA stream, while it does:
// there CUDA may not be called.
inline thread_local bool in_cuda_callback = false;
}  // namespace internal

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_STREAM_STREAM_LOG_H_
