// Shared by the files of rules. For this package.

#ifndef D2L_COMMON_AUTOGRAD_RULE_HELPERS_H_
#define D2L_COMMON_AUTOGRAD_RULE_HELPERS_H_

#include <typeinfo>

#include "absl/container/flat_hash_map.h"
#include "common/autograd/gradient_rules.h"
#include "common/base/source_location.h"
#include "common/ops/elementwise.h"
#include "common/ops/primitive/primitive.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {

// By the address of the primitive's type: hashing its name, as std::type_index
// does, takes as long as all else that a tape does for an operation.
using GradientRules = absl::flat_hash_map<const std::type_info*, GradientRule>;

// The rules of convolution, pooling, batch normalisation and cross-entropy.
void AddNnGradientRules(GradientRules& rules);
// The rule of checkpoint.h.
void AddCheckpointRule(GradientRules& rules);

// Operands that name the line of the forward operation. An operator takes its
// line from its first operand, so that one has to be such an operand:
//
//   const Tensor product = at(dy) * y;
//   return at(product) / x;
//
// An operand does not own its tensor: a tensor that two statements use needs a
// name.
class Line {
 public:
  explicit Line(const ForwardOp& op) : at_(op.at) {}
  template <typename T>
  Operand operator()(const T& x) const {
    return Operand(x, at_);
  }
  operator SourceLocation() const { return at_; }  // NOLINT

 private:
  const SourceLocation at_;
};

// The primitive as an object of its class, by which its rule was found.
template <typename P>
const P& As(const Primitive& primitive) {
  return static_cast<const P&>(primitive);
}

// For rules that read the same whatever the primitive holds.
template <Reads kReads>
Reads Always(const Primitive&, int) {
  return kReads;
}

// Zeros of `shape` whose Slice(dim, start, ..., step) is x. Joined, not written
// in place, so that a tape can compute the gradient.
Tensor PutInZeros(const Tensor& x, const Shape& shape, int dim,
                  std::int64_t start, std::int64_t step, SourceLocation at);

}  // namespace d2l

#endif  // D2L_COMMON_AUTOGRAD_RULE_HELPERS_H_
