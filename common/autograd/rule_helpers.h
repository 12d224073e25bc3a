// What the files of rules share. For this package.

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

// By the address of the primitive's type: to hash its name, as std::type_index
// does, takes as long as the rest of a tape's note.
using GradientRules = absl::flat_hash_map<const std::type_info*, GradientRule>;

// Of convolution, pooling, batch normalisation and cross-entropy.
void AddNnGradientRules(GradientRules& rules);
// Of checkpoint.h.
void AddCheckpointRule(GradientRules& rules);

// Operands that name the line of the forward operation. An operator takes its
// line from its first operand: at(dy) * y.
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

// The primitive as what it is: a rule is found by that.
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
// in place, so that a tape that listens has its gradient.
Tensor PutInZeros(const Tensor& x, const Shape& shape, int dim,
                  std::int64_t start, std::int64_t step, SourceLocation at);

}  // namespace d2l

#endif  // D2L_COMMON_AUTOGRAD_RULE_HELPERS_H_
