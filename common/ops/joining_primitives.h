// The primitives of joining.h, for tracing, rewriting and replaying programs.
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_JOINING_PRIMITIVES_H_
#define D2L_COMMON_OPS_JOINING_PRIMITIVES_H_

#include <cstdint>
#include <vector>

#include "common/kernels/kernels.h"
#include "common/ops/primitive.h"

namespace d2l {

// Its inputs are contiguous.
class CatPrimitive final : public Cloneable<CatPrimitive> {
 public:
  explicit CatPrimitive(int dim) : dim_(dim) {}

  const char* name() const override { return "cat"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  int dim() const { return dim_; }

 private:
  const int dim_;
};

// Its inputs, x and the index, are contiguous, and equal in size but in `dim`.
class IndexPrimitive final : public Cloneable<IndexPrimitive> {
 public:
  IndexPrimitive(kernels::IndexOp op, int dim) : op_(op), dim_(dim) {}

  const char* name() const override;
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  bool MayFailLate(DType) const override { return true; }
  std::vector<Attribute> attributes() const override;

  kernels::IndexOp op() const { return op_; }
  int dim() const { return dim_; }

 private:
  const kernels::IndexOp op_;
  const int dim_;
};

// Its inputs, x, the index and the source, are contiguous: the source as what
// IndexPrimitive would take from x. In one pass if applied in place to x.
class IndexAddPrimitive final : public Cloneable<IndexAddPrimitive> {
 public:
  IndexAddPrimitive(kernels::IndexOp op, int dim) : op_(op), dim_(dim) {}

  const char* name() const override;
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  bool MayFailLate(DType) const override { return true; }
  std::vector<Attribute> attributes() const override;

  kernels::IndexOp op() const { return op_; }
  int dim() const { return dim_; }

 private:
  const kernels::IndexOp op_;
  const int dim_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_JOINING_PRIMITIVES_H_
