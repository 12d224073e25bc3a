// The primitives of elementwise.h, for tracing, rewriting and replaying
// programs.
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_ELEMENTWISE_PRIMITIVES_H_
#define D2L_COMMON_OPS_ELEMENTWISE_PRIMITIVES_H_

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "common/kernels/kernels.h"
#include "common/ops/primitive.h"
#include "common/tensor/scalar.h"

namespace d2l {

// A function of two operands, one of which may be a scalar.
class BinaryPrimitive final : public Cloneable<BinaryPrimitive> {
 public:
  enum class Which { kNone, kFirst, kSecond };

  BinaryPrimitive(kernels::BinaryOp op, Which which, Scalar scalar)
      : op_(op), which_(which), scalar_(scalar) {}

  const char* name() const override { return OpName(op_); }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  bool MayFailLate(DType dtype) const override {
    return (op_ == kernels::BinaryOp::kFloorDivide ||
            op_ == kernels::BinaryOp::kPow) &&
           !IsFloatingPoint(dtype);
  }
  std::vector<Attribute> attributes() const override;

  kernels::BinaryOp op() const { return op_; }
  // Which operand is the scalar.
  Which which() const { return which_; }
  Scalar scalar() const { return scalar_; }

 private:
  const kernels::BinaryOp op_;
  const Which which_;
  const Scalar scalar_;
};

class UnaryPrimitive final : public Cloneable<UnaryPrimitive> {
 public:
  explicit UnaryPrimitive(kernels::UnaryOp op) : op_(op) {}

  const char* name() const override { return OpName(op_); }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;

  kernels::UnaryOp op() const { return op_; }

 private:
  const kernels::UnaryOp op_;
};

// condition ? a : b. Its inputs are the condition and those of a and b that are
// tensors; at least one is.
class WherePrimitive final : public Cloneable<WherePrimitive> {
 public:
  WherePrimitive(absl::optional<Scalar> a, absl::optional<Scalar> b)
      : a_(a), b_(b) {}

  const char* name() const override { return "where"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  // The values where the condition holds and where not; nullopt for a tensor.
  const absl::optional<Scalar>& a() const { return a_; }
  const absl::optional<Scalar>& b() const { return b_; }

 private:
  const absl::optional<Scalar> a_;
  const absl::optional<Scalar> b_;
};

// alpha * x + beta * y of the inputs y and x, contiguous and alike; in one pass
// if applied in place to y.
class AxpbyPrimitive final : public Cloneable<AxpbyPrimitive> {
 public:
  AxpbyPrimitive(double alpha, double beta) : alpha_(alpha), beta_(beta) {}

  const char* name() const override { return "axpby"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  double alpha() const { return alpha_; }
  double beta() const { return beta_; }

 private:
  const double alpha_;
  const double beta_;
};

class FillPrimitive final : public Cloneable<FillPrimitive> {
 public:
  // spec: of the target.
  FillPrimitive(const ValueSpec& spec, Scalar value)
      : spec_(spec), value_(value) {}

  const char* name() const override { return "fill"; }
  Effect effect() const override { return Effect::kInPlace; }
  ValueSpec Infer(Inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  const ValueSpec& spec() const { return spec_; }
  Scalar value() const { return value_; }

 private:
  const ValueSpec spec_;
  const Scalar value_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_ELEMENTWISE_PRIMITIVES_H_
