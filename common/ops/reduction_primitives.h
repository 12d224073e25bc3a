// The primitives of reduction.h, for tracing, rewriting and replaying programs.
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_REDUCTION_PRIMITIVES_H_
#define D2L_COMMON_OPS_REDUCTION_PRIMITIVES_H_

#include <cstdint>
#include <vector>

#include "common/kernels/kernels.h"
#include "common/ops/primitive.h"
#include "common/ops/reduction.h"

namespace d2l {

class ReducePrimitive final : public Cloneable<ReducePrimitive> {
 public:
  ReducePrimitive(kernels::ReduceOp op, const Dims& dims, bool keepdim)
      : op_(op), dims_(dims), keepdim_(keepdim) {}

  const char* name() const override { return OpName(op_); }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  kernels::ReduceOp op() const { return op_; }
  // Empty: all.
  const Dims& dims() const { return dims_; }
  bool keepdim() const { return keepdim_; }

 private:
  // Bit i: dimension i is reduced.
  unsigned ReducedDims(const Tensor& x) const;

  const kernels::ReduceOp op_;
  const Dims dims_;
  const bool keepdim_;
};

// Its input is contiguous.
class SoftmaxPrimitive final : public Cloneable<SoftmaxPrimitive> {
 public:
  SoftmaxPrimitive(bool log, int dim) : log_(log), dim_(dim) {}

  const char* name() const override { return log_ ? "log_softmax" : "softmax"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  // The logarithm of it.
  bool log() const { return log_; }
  int dim() const { return dim_; }

 private:
  const bool log_;
  const int dim_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_REDUCTION_PRIMITIVES_H_
