// StreamCapture: takes the tasks that a thread enqueues on CPU streams, instead
// of their queues.
//
//   class Program : public StreamCapture {
//    public:
//     std::uint64_t Capture(CpuStream&, const OpLabel& label,
//                           std::function<void()> task) override {
//       steps_.push_back({label, std::move(task)});
//       return steps_.size() - 1;
//     }
//     …
//   };
//   {
//     const ScopedStreamCapture scope(program);
//     y = MatMul(x, w);  // captured, not run
//   }
//   stream.Enqueue(OpLabel("program"), [&program] { program.RunSteps(); });
//
// A captured task may be copied, and called any number of times, by one thread
// at a time; ParallelFor in it uses the cores of the stream that calls it. It
// holds raw pointers, so keep every tensor that a captured operation reads or
// writes: released memory may be allocated again at once. A step that throws is
// named in the error if the caller throws a StepError (failure.h).
//
// While a thread has a capture, what cannot be captured throws
// std::logic_error: Record, Wait, HostCallback, copies from and to pageable
// host memory, waits and reads, and all requests to CUDA streams. Stamps of
// captured operations show no duration.
//
// Thread-safety: a capture is called on the thread of its ScopedStreamCapture
// only.

#ifndef D2L_COMMON_DEVICE_CPU_STREAM_CAPTURE_H_
#define D2L_COMMON_DEVICE_CPU_STREAM_CAPTURE_H_

#include <cstdint>
#include <functional>

#include "common/device/op_label.h"
#include "common/device/stream.h"

namespace d2l {

class CpuStream;

class StreamCapture {
 public:
  virtual ~StreamCapture() = default;

  // Takes the task that `stream` would have run and returns the operation's
  // number, which the caller gets. Copy the label to keep it. Exceptions
  // propagate to the enqueueing call.
  virtual std::uint64_t Capture(CpuStream& stream, const OpLabel& label,
                                std::function<void()> task) = 0;
};

// Gives this thread's tasks to `capture` while it lives; the innermost one gets
// them. Throws std::logic_error on a thread that may not enqueue.
class ScopedStreamCapture {
 public:
  explicit ScopedStreamCapture(StreamCapture& capture);
  ~ScopedStreamCapture();
  ScopedStreamCapture(const ScopedStreamCapture&) = delete;
  ScopedStreamCapture& operator=(const ScopedStreamCapture&) = delete;

 private:
  StreamCapture* const previous_;
  const internal::EnqueueMode mode_;  // the one before: a CudaGraph may capture
};

namespace internal {
// This thread's capture; null if it has none.
StreamCapture* CurrentStreamCapture();
[[noreturn]] void ThrowNotCapturable(const OpLabel& label);
}  // namespace internal

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_STREAM_CAPTURE_H_
