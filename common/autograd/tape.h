// GradientTape: gradients of the computation that is made while it lives.
//
//   Tensor w = Randn({3});
//   Tensor x = Randn({8, 3});
//   GradientTape tape({w});
//   Tensor loss = Sum(Square(MatMul(x, w)));
//   std::vector<Tensor> grads = tape.Backward(loss);  // of w
//   w -= grads[0] * 0.1;
//
// The tape listens to its thread's operations and records those that depend on
// the tensors it watches, with the values from which their gradients are
// computed (gradient_rules.h). Backward goes through them from the last to the
// first, and frees each, with its values, as soon as its gradient is known. A
// tensor has no field for any of this, and without a tape nothing is recorded.
//
// Gradients come from operations like any other: asynchronous, on the current
// streams, at the line of the forward operation, on behalf of the line of
// Backward. So a tape inside another gives gradients of gradients, and a tracer
// (ir::Trace) that listens meanwhile records a program of both passes.
//
// In place: an operation may write to any tensor that is not watched.
// Afterwards the other tensors that share its memory, its views or the tensor
// that it is a view of, cannot be read: make views after the write. A view of a
// watched tensor made before the tape is a constant to it. A detached tensor,
// or a view under a NoGradGuard, shares values only: writes through it change
// no other tensor's gradient, nor do writes under a guard. Backward refuses
// values that were overwritten.
//
// Errors: std::invalid_argument for a watched tensor that is not
// floating-point, for a loss that does not depend on a watched tensor or is not
// one number. std::logic_error, with the lines of both operations, for a value
// that was overwritten, and, by the call itself, for a write or a read that is
// not allowed; for an operation without a gradient; for a second Backward.
// AsyncError, with the forward line, if a value could not be computed.
//
// Thread-safety: none; it records the operations of the thread that made it,
// and must end there, before tapes and listeners that began earlier. Ownership:
// it holds the watched tensors, and the values it needs until Backward.

#ifndef D2L_COMMON_AUTOGRAD_TAPE_H_
#define D2L_COMMON_AUTOGRAD_TAPE_H_

#include <memory>
#include <optional>
#include <vector>

#include "common/base/source_location.h"
#include "common/ops/no_grad.h"
#include "common/tensor/tensor.h"

namespace d2l {

class GradientTape {
 public:
  // Watches the tensors: gradients are with respect to them.
  explicit GradientTape(std::vector<Tensor> watched,
                        SourceLocation at = SourceLocation::Current());
  ~GradientTape();
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // The gradients of the loss, one number, for each watched tensor, in their
  // order: each has its shape, is contiguous, and has its own memory; zeros if
  // the loss does not depend on it. Once: the tape records nothing afterwards.
  std::vector<Tensor> Backward(const Tensor& loss,
                               SourceLocation at = SourceLocation::Current());
  // The gradients of Sum(y * gradient), likewise. gradient: that of the final
  // result with respect to y, with y's shape.
  std::vector<Tensor> Backward(const Tensor& y, const Tensor& gradient,
                               SourceLocation at = SourceLocation::Current());

  // Whether x depends on a watched tensor. False after Backward.
  bool NeedsGradient(const Tensor& x) const;

  // Backward in parts: after Begin, each Next continues the backward pass until
  // all operations for one more gradient are enqueued, and returns it, for
  // example to send it while the others are computed. Returns each once, then
  // nullopt. Do not write to a gradient before that.
  struct Gradient {
    int watched;  // the tensor's number
    Tensor value;
  };
  void Begin(const Tensor& y, const Tensor& gradient,
             SourceLocation at = SourceLocation::Current());
  std::optional<Gradient> Next();

 private:
  class Recorder;
  const std::unique_ptr<Recorder> recorder_;
};

// A tensor with x's values, in x's memory, which is a constant to this thread's
// tapes (torch.Tensor.detach).
Tensor Detach(const Tensor& x, SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_AUTOGRAD_TAPE_H_
