// RecordingTape: what a gradient tape (autograd/tape.h) does besides listening
// to operations (record.h): it keeps values that gradients are computed from,
// also one that an operation in place is about to overwrite.
//
//   class Recorder : public OpListener, public RecordingTape { … };
//   ScopedListener<RecordingTape> tape(internal::recording_tapes, &recorder);
//
// Thread-safety: none; a tape is asked on the thread that made it.

#ifndef D2L_COMMON_OPS_PRIMITIVE_RECORDING_TAPE_H_
#define D2L_COMMON_OPS_PRIMITIVE_RECORDING_TAPE_H_

#include <cstddef>

#include "absl/types/span.h"
#include "common/base/listener_list.h"
#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

class Primitive;

class RecordingTape {
 public:
  // False once the gradients were asked for.
  virtual bool recording() const = 0;
  // Whether it computes the gradient of x: a watched tensor, or one that
  // depends on such a tensor.
  virtual bool NeedsGradient(const Tensor& x) const = 0;
  // An operation in place that will overwrite this input is about to be
  // requested. If a gradient needs the old values, requests a copy of them, for
  // the line `at`, and returns it: the operation reads that. Else returns an
  // undefined tensor.
  virtual Tensor CopyBeforeWrite(const Primitive& primitive,
                                 absl::Span<const Tensor* const> inputs,
                                 std::size_t input, SourceLocation at) = 0;

 protected:
  ~RecordingTape() = default;
};

namespace internal {

// This thread's, the innermost first.
inline thread_local const ScopedListener<RecordingTape>* recording_tapes =
    nullptr;

}  // namespace internal

// Whether a tape records this thread's operations.
inline bool IsRecording() {
  bool recording = false;
  ScopedListener<RecordingTape>::ForEach(
      internal::recording_tapes, ~0u, [&recording](const RecordingTape& tape) {
        recording = recording || tape.recording();
      });
  return recording;
}

// Whether a tape of this thread computes the gradient of x.
inline bool NeedsGradient(const Tensor& x) {
  bool needed = false;
  ScopedListener<RecordingTape>::ForEach(
      internal::recording_tapes, ~0u, [&](const RecordingTape& tape) {
        needed = needed || tape.NeedsGradient(x);
      });
  return needed;
}

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_RECORDING_TAPE_H_
