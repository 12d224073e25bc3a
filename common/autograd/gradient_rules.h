// The gradient rule of each primitive, by its class. GradientTape runs the
// rules from the last operation to the first.
//
//   const GradientRule* rule = FindGradientRule(primitive);
//   rule->reads(primitive, 0);  // of the gradient of input 0: ReadsInput(1)
//
// A rule is a function for one input at a time, or for all at once if their
// gradients share work. It receives the gradient of the output and those values
// of the forward operation that `reads` names, and requests operations as any
// program does, at the line of the forward operation. A result may have the
// shape to which the input was broadcast: the tape sums it. An undefined result
// stands for zeros.
//
// To add a rule, add a row in gradient_rules.cc, for an element-wise operation
// or for a class of primitives, or in nn_gradient_rules.cc, for operations of
// networks, and a case in gradient_rules_test.cc, which fails if a primitive
// has no rule and is not listed as one without.
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

// One tensor for each of several inputs.
using Tensors = absl::InlinedVector<Tensor, 2>;

// A value that was saved for the backward pass.
struct SavedTensor {
  int which;              // the number of an input, or kOutput
  std::uint64_t version;  // of its memory when it was saved
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

  // Defined only for the values that `reads` names.
  const Tensor& input(int i) const;
  const Tensor& output() const { return input(kOutput); }
};

struct GradientRule {
  // The values from which the gradient of an input is computed.
  Reads (*reads)(const Primitive& primitive, int input);
  // The gradient of an input. dy: that of the output.
  Tensor (*gradient)(const ForwardOp& op, int input, const Tensor& dy);
  // If not null, called instead, once: returns the gradients of all inputs, at
  // least of those in `wanted`.
  Tensors (*gradients)(const ForwardOp& op, Reads wanted,
                       const Tensor& dy) = nullptr;
};

// Null if there is none.
const GradientRule* FindGradientRule(const Primitive& primitive);

}  // namespace d2l

#endif  // D2L_COMMON_AUTOGRAD_GRADIENT_RULES_H_
