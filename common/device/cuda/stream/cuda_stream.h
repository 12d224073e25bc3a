// CudaStream: a stream of a GPU, made of a CUDA stream and a log of its
// operations.
//
//   CudaStream& stream = static_cast<CudaStream&>(CurrentStream(device));
//   stream.Launch(OpLabel("axpy"), [=](const CudaLaunch& to) {
//     const LaunchGeometry shape = GeometryFor(n, to.multiprocessors);
//     Axpy<<<shape.blocks, shape.threads, 0, to.stream>>>(n, a, x, y);
//   });
//
// Contract: see Stream. Differences from a CPU stream:
//   - The GPU skips nothing. Behind a failed operation kernels and copies to
//     and from pinned memory run on with garbage, host callbacks and pageable
//     copies are skipped, and all of them are marked as failed (StreamLog).
//   - A failure becomes known when the operation is found to be done: by a
//     wait, by an event, or because the queue is full.
//   - An error that loses the GPU's context (an illegal address) cannot be
//     repaired: from then on every call throws it, except Record, whose event
//     is complete and poisoned.
//   - Waiting for an event of a CPU stream blocks the caller.
//   - CUDA may run the host callbacks of all streams on one thread. A callback
//     that waits for another stream's callback may wait for ever.
//   - CUDA has its own bound on queued work. A thread that waits inside CUDA
//     for room blocks all threads that launch, so there is a second bound here,
//     StreamOptions::max_queued_launches, which is reached first.
//
// Progress of a stream
//
// CUDA reports no operation numbers. The stream's progress is known from
// events: one after every kCheckpointEvery operations, one behind a long one (a
// product of cuBLAS, a large array: long_kernel_launched), one before an
// operation of unknown duration (a host callback, a wait), those that Record
// and ReadBehind make, those behind operations with stamps, and one at the end
// for a wait that none of these covers. So a wait for an operation lasts at
// most kCheckpointEvery - 1 short kernels and copies and one long one longer,
// and never includes a callback after it, as cudaStreamSynchronize would if
// another thread enqueued one. An event behind every operation would make that
// exact, but would be another call into the driver for each, as would a word
// that the stream writes (cuStreamWriteValue64). With one event to sixteen
// operations, an operation costs what its launch does, plus a label that is
// copied and two uncontended locks, well below 0.1 us on the host
// (`bazel run //common/device/cuda:benchmarks`, without a GPU). Sixteen is a
// choice; on a GPU it has not been measured.
//
// QueuedOperations is equally coarse, but it is 0 if and only if all is done.

#ifndef D2L_COMMON_DEVICE_CUDA_STREAM_CUDA_STREAM_H_
#define D2L_COMMON_DEVICE_CUDA_STREAM_CUDA_STREAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "common/base/source_location.h"
#include "common/device/backend.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_gpu.h"
#include "common/device/cuda/cuda_launch.h"
#include "common/device/cuda/stream/stream_log.h"
#include "common/device/device.h"
#include "common/device/event.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"

namespace d2l {

class CudaStream final : public Stream {
 public:
  static constexpr std::uint64_t kCheckpointEvery = 16;

  // Throws std::runtime_error if CUDA cannot make a stream.
  CudaStream(CudaGpu& gpu, Device device, int index,
             const StreamOptions& options);
  ~CudaStream() override;

  // Calls `launch`, a callable `void(const CudaLaunch&)`, which launches one or
  // several kernels on the stream it is given, and returns the operation's
  // number. Only one thread at a time runs a launch of this stream. `launch`
  // must not wait and must not call into streams, except for launches on other
  // streams (NcclGroup), after which it makes this GPU current again. Waits
  // while the queue is full; with launch blocking, until the operation is done
  // (Finish then says whether it failed).
  //
  // The label's stamps, if it has any, are written when the operation is known
  // to be done. The times come from events, and the clock of CudaGpu converts
  // them to the host's: the beginning is the end of the work before, some
  // microseconds before the first kernel begins. An operation behind another
  // that has stamps adds one event to the queue.
  //
  // The launch is an NvtxRange under the label's name.
  //
  // While this thread records a CudaGraph the launch becomes a part of the
  // graph: nothing of the above holds, and the number has no meaning.
  //
  // If CUDA rejects the launch, or `launch` throws, the operation has failed,
  // and this call throws AsyncError; the stream goes on.
  template <typename F>
  std::uint64_t Launch(const OpLabel& label, const F& launch) {
    return LaunchErased(label, launch);
  }

  std::int64_t QueuedOperations() override;

  // Reads through page-locked memory, of which a stream has room for one
  // number: returns false while another thread uses that.
  bool ReadBehind(std::uint64_t number, void* to, const void* from,
                  std::size_t bytes, SourceLocation requested_at) override;

  // For the end of the process: call Shutdown on all streams, then Drain on
  // each. From Shutdown on, host callbacks are skipped and nothing is stalled.
  // Drain waits for the queued work; afterwards CUDA is not called, and new
  // operations count as skipped.
  void Shutdown() override;

  CudaGpu& gpu() const { return gpu_; }
  // False once the GPU is lost or the program is ending.
  bool is_running() const {
    return log_->state() == StreamLog::State::kRunning;
  }

  // A library's state for this stream (see cuda_blas.h). Use it within a
  // launch; it is destroyed before the CUDA stream.
  std::shared_ptr<void>& library_state() { return library_state_; }

 private:
  friend class CudaGraph;
  // Holds mutex_, and calls StreamLog::DropPending after unlocking it.
  class Lock : public std::unique_lock<std::mutex> {
   public:
    explicit Lock(CudaStream& stream)
        : unique_lock(stream.mutex_), log_(*stream.log_) {}
    ~Lock() {
      if (owns_lock()) unlock();
      log_.DropPending();
    }

   private:
    StreamLog& log_;
  };

  // When the event is done, so are operations below `end` and `launches`
  // launches.
  struct Checkpoint {
    std::uint64_t end = 0;
    std::shared_ptr<CudaEvent> event;
    std::uint64_t launches = 0;
  };
  // Makes the CUDA calls of an operation and returns their error.
  using Issue = absl::FunctionRef<int(const StreamLog::Ticket&)>;
  using LaunchFunction = absl::FunctionRef<void(const CudaLaunch&)>;

  std::shared_ptr<EventState> DoRecord() override;
  std::uint64_t DoWait(const OpLabel& label,
                       const std::shared_ptr<EventState>& event) override;
  std::uint64_t DoCopy(const OpLabel& label, void* dst, const void* src,
                       std::size_t bytes, CopyKind kind,
                       bool pageable) override;
  std::uint64_t DoHostCallback(const OpLabel& label,
                               std::function<void()> callback) override;
  // The GPU waits for a word of host memory (CudaApi::WaitForWord), not in a
  // host callback.
  std::function<void()> DoStall() override;
  void DoDrain() override;
  void AwaitDone(std::uint64_t end) override;

  std::uint64_t LaunchErased(const OpLabel& label, LaunchFunction launch);
  // Launches between two events, which become the operation's stamps. Returns
  // CUDA's error.
  int LaunchTimed(StreamLog::Timing timing, const CudaLaunch& to,
                  LaunchFunction launch);
  // Takes a number; calls `issue` if the stream runs. may_take_long: see above.
  std::uint64_t Enqueue(const OpLabel& label, bool may_take_long, Issue issue);
  // As Enqueue, with the lock held and with room in the queue.
  std::uint64_t EnqueueLocked(const OpLabel& label, bool may_take_long,
                              Issue issue);
  bool OperationsAreFull() const {
    return log_->pushed() - log_->completed() >= bound_;
  }
  bool LaunchesAreFull() const {
    return launches_ - launches_done_ >= launch_bound_;
  }
  void AwaitRoom(Lock& lock);
  void Await(const Checkpoint& checkpoint);

  // Call these with the lock held. The first two return CUDA's error.
  int RecordEvent(bool timed, std::shared_ptr<CudaEvent>* event);
  int RecordCheckpoint();
  void AddCheckpoint(std::uint64_t end, std::shared_ptr<CudaEvent> event);
  void ForgetDone();
  void Poll();
  Checkpoint CheckpointBehind(std::uint64_t number);

  const std::shared_ptr<StreamLog> log_;  // also the ledger of failures
  CudaGpu& gpu_;
  CudaApi& api_;
  const std::uint64_t bound_;
  const std::uint64_t launch_bound_;
  const std::uint64_t checkpoint_every_;
  CudaStreamHandle stream_ = nullptr;
  StreamMemory* memory_ = nullptr;
  std::shared_ptr<void> library_state_;

  std::mutex reading_;  // held while memory_->number is used

  std::mutex recording_;  // held while a graph is recorded
  // The stream that CUDA records. It is kept: a library's state may use it.
  CudaStreamHandle recorded_ = nullptr;

  std::mutex mutex_;  // held to enqueue; guards what follows
  std::deque<Checkpoint> checkpoints_;
  std::uint64_t last_checkpoint_ = 0;  // how many operations are before it
  std::uint64_t launches_ = 0;         // see StreamOptions
  std::uint64_t launches_done_ = 0;    // known to be done
  std::uint32_t holds_ = 0;            // how often Stall was called

  std::atomic<std::int64_t> waiting_for_room_{0};
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_STREAM_CUDA_STREAM_H_
