// The primitives of cross_entropy.h, and of its gradient, for tracing,
// rewriting and replaying programs. Their inputs are contiguous.
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_NN_CROSS_ENTROPY_PRIMITIVES_H_
#define D2L_COMMON_OPS_NN_CROSS_ENTROPY_PRIMITIVES_H_

#include <cstdint>

#include "common/ops/primitive.h"

namespace d2l {

// Its inputs: logits, labels.
class CrossEntropyPrimitive final : public Cloneable<CrossEntropyPrimitive> {
 public:
  const char* name() const override { return "cross_entropy"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  bool MayFailLate(DType) const override { return true; }
};

// Of the logits. Its inputs: the gradient of the losses, logits, labels.
class CrossEntropyGradientPrimitive final
    : public Cloneable<CrossEntropyGradientPrimitive> {
 public:
  const char* name() const override { return "cross_entropy_backward"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  bool MayFailLate(DType) const override { return true; }
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_CROSS_ENTROPY_PRIMITIVES_H_
