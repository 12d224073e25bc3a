// The primitive of matmul.h, for tracing, rewriting and replaying programs.
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_MATMUL_PRIMITIVES_H_
#define D2L_COMMON_OPS_MATMUL_PRIMITIVES_H_

#include <cstdint>

#include "common/ops/primitive.h"

namespace d2l {

class MatMulPrimitive final : public Cloneable<MatMulPrimitive> {
 public:
  const char* name() const override { return "matmul"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_MATMUL_PRIMITIVES_H_
