// The gradient of each primitive, by its class: what GradientTape runs, from
// the last operation to the first.
//
//   const GradientRule* rule = FindGradientRule(primitive);
//   rule->reads(primitive, 0);  // of the gradient of input 0: ReadsInput(1)
//
// A rule is a function for one input at a time, or for all at once if their
// gradients share work. It is given the gradient of the output and those values
// of the forward operation that `reads` asked for, and requests operations as
// any program does, at the line of the forward operation. A result may have the
// shape that the input broadcast to: the tape sums it. An undefined one stands
// for zeros.
//
// Adding one: a row in gradient_rules.cc, for an element-wise operation or for
// a class of primitives, or for what networks are made of in
// nn_gradient_rules.cc, and a case in gradient_rules_test.cc, which fails while
// a primitive has neither a rule nor a line that says so.
//
// Thread-safety: constants and pure functions.

#ifndef D2L_COMMON_AUTOGRAD_GRADIENT_RULES_H_
#define D2L_COMMON_AUTOGRAD_GRADIENT_RULES_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "common/base/source_location.h"
#include "common/ops/primitive/primitive.h"
#include "common/tensor/tensor.h"

namespace d2l {

// A set of values of an operation.
using Reads = std::uint32_t;
constexpr Reads ReadsInput(int input) { return Reads{1} << input; }
inline constexpr int kOutput = 31;
inline constexpr Reads kReadsOutput = Reads{1} << kOutput;

// Of several inputs.
using Tensors = absl::InlinedVector<Tensor, 2>;

// A value that was kept for the way back.
struct SavedTensor {
  int which;              // the number of an input, or kOutput
  std::uint64_t version;  // of its memory when it was kept
  Tensor value;
};

// An operation of the forward pass, as its rule sees it.
struct ForwardOp {
  const Primitive& primitive;
  SourceLocation at;
  const absl::InlinedVector<ValueSpec, 2>& inputs;
  const absl::InlinedVector<SavedTensor, 2>& saved;
  // The inputs that are stored column by column, as a transposed view is.
  Reads transposed;

  // Only what `reads` asked for; else an undefined tensor.
  const Tensor& input(int i) const;
  const Tensor& output() const { return input(kOutput); }
};

struct GradientRule {
  // What the gradient of an input is computed from.
  Reads (*reads)(const Primitive& primitive, int input);
  // The gradient of an input. dy: of the output.
  Tensor (*gradient)(const ForwardOp& op, int input, const Tensor& dy);
  // If not null, called instead, once: the gradients of all inputs, at least of
  // those in `wanted`.
  Tensors (*gradients)(const ForwardOp& op, Reads wanted,
                       const Tensor& dy) = nullptr;
};

// Null if there is none.
const GradientRule* FindGradientRule(const Primitive& primitive);

}  // namespace d2l

#endif  // D2L_COMMON_AUTOGRAD_GRADIENT_RULES_H_
