// The primitives of the operations that users call, for tracing, rewriting and
// replaying programs. Those of networks are in nn/primitives.h.
//
//   Tensor y = Apply(SoftmaxPrimitive(/*log=*/false, -1), {&x}, at);
//
// Immutable values; see primitive.h. Each declares its fields once, in Visit.

#ifndef D2L_COMMON_OPS_PRIMITIVE_PRIMITIVES_H_
#define D2L_COMMON_OPS_PRIMITIVE_PRIMITIVES_H_

#include <cstdint>
#include <utility>

#include "absl/types/optional.h"
#include "common/device/memory/memory.h"
#include "common/kernels/kernels.h"
#include "common/ops/primitive/fields.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/reduction.h"
#include "common/tensor/scalar.h"
#include "common/tensor/shape.h"

namespace d2l {

// ---- elementwise.h

// A function of two operands, one of which may be a scalar.
class BinaryPrimitive final : public Cloneable<BinaryPrimitive> {
 public:
  enum class Which { kNone, kFirst, kSecond };

  BinaryPrimitive(kernels::BinaryOp op, Which which, Scalar scalar)
      : op_(op), which_(which), scalar_(scalar) {}

  const char* name() const override { return OpName(op_); }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  bool MayFailLate(DType dtype) const override {
    return (op_ == kernels::BinaryOp::kFloorDivide ||
            op_ == kernels::BinaryOp::kPow) &&
           !IsFloatingPoint(dtype);
  }
  void Visit(Fields& field) override;

  kernels::BinaryOp op() const { return op_; }
  // Which operand is the scalar.
  Which which() const { return which_; }
  Scalar scalar() const { return scalar_; }

 private:
  kernels::BinaryOp op_;
  Which which_;
  Scalar scalar_;
};

class UnaryPrimitive final : public Cloneable<UnaryPrimitive> {
 public:
  explicit UnaryPrimitive(kernels::UnaryOp op) : op_(op) {}

  const char* name() const override { return OpName(op_); }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;

  kernels::UnaryOp op() const { return op_; }

 private:
  kernels::UnaryOp op_;
};

// condition ? a : b. Its inputs are the condition and those of a and b that are
// tensors; at least one is.
class WherePrimitive final : public Cloneable<WherePrimitive> {
 public:
  WherePrimitive(absl::optional<Scalar> a, absl::optional<Scalar> b)
      : a_(a), b_(b) {}

  const char* name() const override { return "where"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field("input", a_)("other", b_); }

  // The values where the condition holds and where not; nullopt for a tensor.
  const absl::optional<Scalar>& a() const { return a_; }
  const absl::optional<Scalar>& b() const { return b_; }

 private:
  absl::optional<Scalar> a_, b_;
};

// alpha * x + beta * y of the inputs y and x, contiguous and alike; in one pass
// if applied in place to y.
class AxpbyPrimitive final : public Cloneable<AxpbyPrimitive> {
 public:
  AxpbyPrimitive(double alpha, double beta) : alpha_(alpha), beta_(beta) {}

  const char* name() const override { return "axpby"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field("alpha", alpha_)("beta", beta_); }

  double alpha() const { return alpha_; }
  double beta() const { return beta_; }

 private:
  double alpha_, beta_;
};

class FillPrimitive final : public Cloneable<FillPrimitive> {
 public:
  // spec: of the target.
  FillPrimitive(const ValueSpec& spec, Scalar value)
      : spec_(spec), value_(value) {}

  const char* name() const override { return "fill"; }
  Effect effect() const override { return Effect::kInPlace; }
  ValueSpec Infer(Inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field(spec_)("value", value_); }

 private:
  ValueSpec spec_;
  Scalar value_;
};

// ---- reduction.h

class ReducePrimitive final : public Cloneable<ReducePrimitive> {
 public:
  ReducePrimitive(kernels::ReduceOp op, const Dims& dims, bool keepdim)
      : op_(op), dims_(dims), keepdim_(keepdim) {}

  const char* name() const override { return OpName(op_); }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override;

  kernels::ReduceOp op() const { return op_; }
  // Empty: all.
  const Dims& dims() const { return dims_; }

 private:
  // Bit i: dimension i is reduced.
  unsigned ReducedDims(const Tensor& x) const;

  kernels::ReduceOp op_;
  Dims dims_;
  bool keepdim_;
};

// Its input is contiguous.
class SoftmaxPrimitive final : public Cloneable<SoftmaxPrimitive> {
 public:
  SoftmaxPrimitive(bool log, int dim) : log_(log), dim_(dim) {}

  const char* name() const override { return log_ ? "log_softmax" : "softmax"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field("dim", dim_); }

  // The logarithm of it.
  bool log() const { return log_; }
  int dim() const { return dim_; }

 private:
  bool log_;
  int dim_;
};

// ---- matmul.h

class MatMulPrimitive final : public Cloneable<MatMulPrimitive> {
 public:
  const char* name() const override { return "matmul"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
};

// ---- joining.h

// Its inputs are contiguous.
class CatPrimitive final : public Cloneable<CatPrimitive> {
 public:
  explicit CatPrimitive(int dim) : dim_(dim) {}

  const char* name() const override { return "cat"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field("dim", dim_); }

  int dim() const { return dim_; }

 private:
  int dim_;
};

// The base of what an index along a dimension says.
class IndexBase : public Primitive {
 public:
  IndexBase(kernels::IndexOp op, int dim) : op_(op), dim_(dim) {}

  bool MayFailLate(DType) const override { return true; }
  void Visit(Fields& field) override { field("dim", dim_); }

  kernels::IndexOp op() const { return op_; }
  int dim() const { return dim_; }

 protected:
  kernels::IndexOp op_;
  int dim_;
};

// Its inputs, x and the index, are contiguous, and equal in size but in `dim`.
class IndexPrimitive final : public Cloneable<IndexPrimitive, IndexBase> {
 public:
  using Cloneable::Cloneable;

  const char* name() const override {
    return op_ == kernels::IndexOp::kGather ? "gather" : "index_select";
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
};

// Its inputs, x, the index and the source, are contiguous: the source as what
// IndexPrimitive would take from x. In one pass if applied in place to x.
class IndexAddPrimitive final : public Cloneable<IndexAddPrimitive, IndexBase> {
 public:
  using Cloneable::Cloneable;

  const char* name() const override {
    return op_ == kernels::IndexOp::kGather ? "scatter_add" : "index_add";
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
};

// ---- copy.h, and the assignment to x[...]

// The input, broadcast to a shape and converted, on a device.
class CopyPrimitive final : public Cloneable<CopyPrimitive> {
 public:
  // name: of the function that copies, a literal.
  // effect: kInPlace of CopyTo, else kPure.
  CopyPrimitive(const char* name, const ValueSpec& spec,
                Effect effect = Effect::kPure)
      : name_(name), effect_(effect), spec_(spec) {}

  const char* name() const override { return name_; }
  Effect effect() const override { return effect_; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field(spec_); }

 private:
  const char* name_;
  Effect effect_;
  ValueSpec spec_;  // of the output, to which the input broadcasts
};

// ---- creation.h

// The base of all creations: a shape, a dtype and a device, but no input.
class Creation : public Primitive {
 public:
  explicit Creation(const ValueSpec& spec) : spec_(spec) {}

  ValueSpec Infer(Inputs inputs) const override;
  void Visit(Fields& field) override { field(spec_); }

 protected:
  ValueSpec spec_;
};

class EmptyPrimitive final : public Cloneable<EmptyPrimitive, Creation> {
 public:
  using Cloneable::Cloneable;

  const char* name() const override { return "empty"; }
  Effect effect() const override { return Effect::kUninitialized; }
  std::uint64_t Launch(const LaunchContext&) const override;
};

class FullPrimitive final : public Cloneable<FullPrimitive, Creation> {
 public:
  // name: "ones", "full", a literal.
  FullPrimitive(const char* name, const ValueSpec& spec, Scalar value)
      : Cloneable(spec), name_(name), value_(value) {}

  const char* name() const override { return name_; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field(spec_)("fill_value", value_); }

 private:
  const char* name_;
  Scalar value_;
};

class ArangePrimitive final : public Cloneable<ArangePrimitive, Creation> {
 public:
  ArangePrimitive(const ValueSpec& spec, Scalar start, Scalar step)
      : Cloneable(spec), start_(start), step_(step) {}

  const char* name() const override { return "arange"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override {
    field(spec_)("start", start_)("step", step_);
  }

 private:
  Scalar start_, step_;
};

class EyePrimitive final : public Cloneable<EyePrimitive, Creation> {
 public:
  using Cloneable::Cloneable;

  const char* name() const override { return "eye"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
};

// The copy of a staging buffer. A tracer that keeps it keeps the buffer.
class FromVectorPrimitive final
    : public Cloneable<FromVectorPrimitive, Creation> {
 public:
  FromVectorPrimitive(const ValueSpec& spec, StorageRef staging)
      : Cloneable(spec), staging_(std::move(staging)) {}

  const char* name() const override { return "from_vector"; }
  Effect effect() const override { return Effect::kHostData; }
  std::uint64_t Launch(const LaunchContext& ctx) const override;

 private:
  StorageRef staging_;
};

class RandomPrimitive final : public Cloneable<RandomPrimitive, Creation> {
 public:
  // Integers are from low to high - 1.
  // per_device: with one seed devices of one type draw other sequences, not the
  // same. Those of one index, as cpu:0 and cuda:0, still do.
  RandomPrimitive(kernels::RandomOp op, const ValueSpec& spec,
                  std::int64_t low = 0, std::int64_t high = 1,
                  bool per_device = false)
      : Cloneable(spec),
        op_(op),
        per_device_(per_device),
        low_(low),
        high_(high) {}

  const char* name() const override { return OpName(op_); }
  Effect effect() const override { return Effect::kRandom; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override;

 private:
  kernels::RandomOp op_;
  bool per_device_;
  std::int64_t low_, high_;
};

// ---- views.h

class ReshapePrimitive final
    : public Cloneable<ReshapePrimitive, ViewPrimitive> {
 public:
  // One size may be -1: whatever is left.
  explicit ReshapePrimitive(const Shape& shape) : shape_(shape) {}

  const char* name() const override { return "view"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override { field("shape", shape_); }

 private:
  Shape shape_;
};

class TransposePrimitive final
    : public Cloneable<TransposePrimitive, ViewPrimitive> {
 public:
  TransposePrimitive(int dim0, int dim1) : dim0_(dim0), dim1_(dim1) {}

  const char* name() const override { return "transpose"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override { field("dim0", dim0_)("dim1", dim1_); }

  int dim0() const { return dim0_; }
  int dim1() const { return dim1_; }

 private:
  int dim0_, dim1_;
};

class SlicePrimitive final : public Cloneable<SlicePrimitive, ViewPrimitive> {
 public:
  SlicePrimitive(int dim, std::int64_t start, std::int64_t end,
                 std::int64_t step)
      : dim_(dim), start_(start), end_(end), step_(step) {}

  const char* name() const override { return "slice"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override {
    field("dim", dim_)("start", start_)("end", end_)("step", step_);
  }

  int dim() const { return dim_; }
  std::int64_t start() const { return start_; }
  std::int64_t step() const { return step_; }

 private:
  int dim_;
  std::int64_t start_, end_, step_;
};

class SelectPrimitive final : public Cloneable<SelectPrimitive, ViewPrimitive> {
 public:
  SelectPrimitive(int dim, std::int64_t index) : dim_(dim), index_(index) {}

  const char* name() const override { return "select"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override { field("dim", dim_)("index", index_); }

  int dim() const { return dim_; }
  std::int64_t index() const { return index_; }

 private:
  int dim_;
  std::int64_t index_;
};

class SqueezePrimitive final
    : public Cloneable<SqueezePrimitive, ViewPrimitive> {
 public:
  static constexpr int kAllDims = kMaxRank;

  explicit SqueezePrimitive(int dim) : dim_(dim) {}

  const char* name() const override { return "squeeze"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override {
    if (field.Has("dim", dim_ != kAllDims)) field("dim", dim_);
  }

 private:
  int dim_;
};

class UnsqueezePrimitive final
    : public Cloneable<UnsqueezePrimitive, ViewPrimitive> {
 public:
  explicit UnsqueezePrimitive(int dim) : dim_(dim) {}

  const char* name() const override { return "unsqueeze"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override { field("dim", dim_); }

 private:
  int dim_;
};

class ExpandPrimitive final : public Cloneable<ExpandPrimitive, ViewPrimitive> {
 public:
  // A size of -1: as in the input.
  explicit ExpandPrimitive(const Shape& shape) : shape_(shape) {}

  const char* name() const override { return "expand"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override { field("shape", shape_); }

 private:
  Shape shape_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_PRIMITIVES_H_
