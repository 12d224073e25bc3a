// GradientTape: gradients of what is computed while it lives.
//
//   Tensor w = Randn({3});
//   Tensor x = Randn({8, 3});
//   GradientTape tape({w});
//   Tensor loss = Sum(Square(MatMul(x, w)));
//   std::vector<Tensor> grads = tape.Backward(loss);  // of w
//   w -= grads[0] * 0.1;
//
// The tape listens to its thread's operations and notes those that depend on
// the tensors it watches, with the values that their gradients are computed
// from (gradient_rules.h). Backward goes through them from the last to the
// first; each is let go, with its values, as soon as its gradient is known. A
// tensor has no field for any of this, and nothing is noted without a tape.
//
// Gradients come from operations like any other: asynchronous, on the current
// streams, at the line of the forward operation, on behalf of the line of
// Backward. So a tape inside another gives gradients of gradients, and a tracer
// (ir::Trace) that listens meanwhile has a program of both passes.
//
// In place: an operation may write to any tensor that is not watched.
// Afterwards the tensors that share its memory, a view or what it is a view of,
// cannot be read: make views after the write. A view of a watched tensor made
// before the tape is a constant to it. What is detached, or a view under a
// NoGradGuard, shares values only: writes through it change no other's
// gradient, nor do writes under a guard. Backward refuses values that were
// overwritten.
//
// Errors: std::invalid_argument for a watched tensor that is not
// floating-point, for a loss that does not depend on a watched tensor or is not
// one number. std::logic_error, with the lines of both operations, for a value
// that was overwritten, and for a write or a read that is not allowed, by the
// very call; for an operation without a gradient; for a second Backward.
// AsyncError, with the forward line, if a value could not be computed.
//
// Thread-safety: none; it notes the operations of the thread that made it, and
// ends there, before tapes and listeners that began earlier. Ownership: it
// holds the watched tensors, and the values it needs until Backward.

#ifndef D2L_COMMON_AUTOGRAD_TAPE_H_
#define D2L_COMMON_AUTOGRAD_TAPE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/autograd/gradient_rules.h"
#include "common/base/source_location.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/tensor/tensor.h"

namespace d2l {

class GradientTape : private OpListener {
 public:
  // Watches the tensors: gradients are with respect to them.
  explicit GradientTape(std::vector<Tensor> watched,
                        SourceLocation at = SourceLocation::Current());
  GradientTape(const GradientTape&) = delete;
  GradientTape& operator=(const GradientTape&) = delete;

  // The gradients of the loss, one number, for each watched tensor, in their
  // order: of its shape, contiguous, in memory of their own; zeros if the loss
  // does not depend on it. Once: the tape notes nothing afterwards.
  std::vector<Tensor> Backward(const Tensor& loss,
                               SourceLocation at = SourceLocation::Current());
  // The same of Sum(y * gradient): gradient, of the shape of y, is how much
  // what is wanted in the end changes with each element of y.
  std::vector<Tensor> Backward(const Tensor& y, const Tensor& gradient,
                               SourceLocation at = SourceLocation::Current());

  // Backward will call it with each watched tensor's number and gradient, as
  // soon as all operations for that one have been requested: to send it away
  // while the others are computed. It must not write to it.
  using OnGradient = std::function<void(int watched, const Tensor& gradient)>;
  void set_on_gradient(OnGradient on_gradient) {
    on_gradient_ = std::move(on_gradient);
  }

 private:
  // An operation that depends on what is watched.
  struct Node {
    Node(std::unique_ptr<Primitive> primitive, SourceLocation at)
        : primitive(std::move(primitive)),
          rule(FindGradientRule(*this->primitive)),
          at(at) {}
    const std::unique_ptr<Primitive> primitive;
    const GradientRule* const rule;  // null if there is none
    const SourceLocation at;
    int output;                                // the number of the value
    absl::InlinedVector<int, 2> input_values;  // -1: not differentiable
    absl::InlinedVector<ValueSpec, 2> inputs;
    absl::InlinedVector<SavedTensor, 2> saved;
    Reads transposed = 0;  // see ForwardOp
  };
  // Of a tensor. Its family are those that share memory and gradients with it:
  // its views, and what it is a view of.
  struct Known {
    int value;  // its number; -1 for a constant
    int since;  // the number of the last write in place when it got this value
    std::uint64_t family;
  };
  // The numbers of the last writes in place to a family, from 1 on.
  struct Writes {
    int any = 0;
    int differentiable = 0;
    SourceLocation at;
  };

  void OnOp(const OpRecord& record) override;
  Tensor CopyBeforeWrite(const Primitive& primitive,
                         absl::Span<const Tensor* const> inputs,
                         std::size_t input, SourceLocation at) override;
  void Note(const OpRecord& record, const absl::InlinedVector<int, 2>& values,
            std::uint64_t family);
  void AddValue(const Tensor& x, std::uint64_t family);
  static Known Unknown(const Tensor& x);
  Known KnownOf(const Tensor& x) const;
  // Throws std::logic_error, and has Backward throw it, if x was written to
  // through a tensor of which it does not know.
  void CheckRead(const Tensor& x, const Known& known, const char* reader,
                 SourceLocation at);
  [[noreturn]] void Refuse(const std::string& what);
  void CheckUnchanged(const Node& node) const;
  bool IsWatched(int value) const {
    return value >= 0 && value < static_cast<int>(watched_.size());
  }
  // The number of y. Throws what is wrong with Backward's arguments.
  int CheckBackward(const Tensor& y, const Tensor& gradient, SourceLocation at);
  // Of each watched tensor: the number of the first operation that uses it,
  // which is the last that adds to its gradient.
  std::vector<std::size_t> FirstUses() const;
  // From the last operation to the first; gives the watched tensors' gradients.
  // gradient: where the walk begins; its memory is the caller's.
  std::vector<Tensor> Walk(std::vector<Tensor>& gradients,
                           const Tensor& gradient, SourceLocation at);
  // Adds to the gradients of the inputs. dy: of the output.
  void GoBack(const Node& node, const Tensor& dy,
              std::vector<Tensor>& gradients) const;

  const std::vector<Tensor> watched_;
  OnGradient on_gradient_;
  const SourceLocation watched_at_;
  int num_values_ = 0;                               // the first are watched
  absl::flat_hash_map<std::uint64_t, Known> known_;  // by a tensor's id
  std::vector<std::unique_ptr<Node>> nodes_;
  int num_writes_ = 0;
  absl::flat_hash_map<std::uint64_t, Writes> families_;
  // By the id of memory: the last operation in place.
  absl::flat_hash_map<std::uint64_t, SourceLocation> writes_;
  std::string refused_;       // what it was, if a write was
  SourceLocation gone_back_;  // the line of Backward, if it was called
  bool done_ = false;
  bool given_ = false;             // no, if Backward failed
  const ScopedOpListener listen_;  // last: it listens when all is there
};

// The same values in the same memory, as a constant to this thread's tapes
// (torch.Tensor.detach).
Tensor Detach(const Tensor& x, SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_AUTOGRAD_TAPE_H_
