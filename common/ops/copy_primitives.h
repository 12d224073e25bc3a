// The primitive of copy.h and of the assignment to x[...], for tracing,
// rewriting and replaying programs.
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_COPY_PRIMITIVES_H_
#define D2L_COMMON_OPS_COPY_PRIMITIVES_H_

#include <cstdint>
#include <vector>

#include "common/ops/primitive.h"

namespace d2l {

// The input, broadcast to a shape and converted, on a device.
class CopyPrimitive final : public Cloneable<CopyPrimitive> {
 public:
  // name: of the function that copies, a literal.
  // effect: kInPlace of CopyTo, else kPure.
  CopyPrimitive(const char* name, const ValueSpec& spec,
                Effect effect = Effect::kPure)
      : name_(name), spec_(spec), effect_(effect) {}

  const char* name() const override { return name_; }
  Effect effect() const override { return effect_; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  // Of the output. The input broadcasts to the shape.
  const ValueSpec& spec() const { return spec_; }

 private:
  const char* const name_;
  const ValueSpec spec_;
  const Effect effect_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_COPY_PRIMITIVES_H_
