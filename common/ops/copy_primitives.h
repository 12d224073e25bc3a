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
  CopyPrimitive(const char* name, const Shape& shape, DType dtype,
                Device device)
      : name_(name), spec_{shape, dtype, device} {}

  const char* name() const override { return name_; }
  Effect effect() const override;
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  // Of the output. The input broadcasts to the shape.
  const ValueSpec& spec() const { return spec_; }

 private:
  const char* const name_;
  const ValueSpec spec_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_COPY_PRIMITIVES_H_
