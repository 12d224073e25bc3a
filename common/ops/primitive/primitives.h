// The primitives of the operations that users call, for tracing, rewriting and
// replaying programs. Those of networks are in nn/primitives.h.
//
//   Tensor y = Apply(SoftmaxPrimitive(/*log=*/false, -1), {&x}, at);
//
// Immutable values; see primitive.h. Each declares its fields once, in Visit.

#ifndef D2L_COMMON_OPS_PRIMITIVE_PRIMITIVES_H_
#define D2L_COMMON_OPS_PRIMITIVE_PRIMITIVES_H_

#include <cstdint>
#include <optional>
#include <utility>

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
struct BinaryPrimitive final : Cloneable<BinaryPrimitive> {
  enum class Which { kNone, kFirst, kSecond };

  BinaryPrimitive(kernels::BinaryOp op, Which which, Scalar scalar)
      : op(op), which(which), scalar(scalar) {}

  const char* name() const override { return OpName(op); }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  bool MayFailLate(DType dtype) const override {
    return (op == kernels::BinaryOp::kFloorDivide ||
            op == kernels::BinaryOp::kPow) &&
           !IsFloatingPoint(dtype);
  }
  void Visit(Fields& field) override;

  kernels::BinaryOp op;
  Which which;  // operand is the scalar
  Scalar scalar;
};

struct UnaryPrimitive final : Cloneable<UnaryPrimitive> {
  explicit UnaryPrimitive(kernels::UnaryOp op) : op(op) {}

  const char* name() const override { return OpName(op); }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;

  kernels::UnaryOp op;
};

// condition ? a : b. Its inputs are the condition and those of a and b that are
// tensors; at least one is.
struct WherePrimitive final : Cloneable<WherePrimitive> {
  WherePrimitive(std::optional<Scalar> a, std::optional<Scalar> b)
      : a(a), b(b) {}

  const char* name() const override { return "where"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  void Visit(Fields& field) override { field("input", a)("other", b); }

  // The values where the condition holds and where not; nullopt for a tensor.
  std::optional<Scalar> a, b;
};

// alpha * x + beta * y of the inputs y and x, which are contiguous and of one
// shape and dtype; in one pass if applied in place to y.
struct AxpbyPrimitive final : Cloneable<AxpbyPrimitive> {
  AxpbyPrimitive(double alpha, double beta) : alpha(alpha), beta(beta) {}

  const char* name() const override { return "axpby"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  void Visit(Fields& field) override { field("alpha", alpha)("beta", beta); }

  double alpha, beta;
};

struct FillPrimitive final : Cloneable<FillPrimitive> {
  // spec: that of the target.
  FillPrimitive(const ValueSpec& spec, Scalar value)
      : spec(spec), value(value) {}

  const char* name() const override { return "fill"; }
  Effect effect() const override { return Effect::kInPlace; }
  ValueSpec Infer(Inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field(spec)("value", value); }

  ValueSpec spec;
  Scalar value;
};

// ---- reduction.h

struct ReducePrimitive final : Cloneable<ReducePrimitive> {
  ReducePrimitive(kernels::ReduceOp op, const Dims& dims, bool keepdim)
      : op(op), dims(dims), keepdim(keepdim) {}

  const char* name() const override { return OpName(op); }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  void Visit(Fields& field) override;

  // Bit i: dimension i is reduced.
  unsigned ReducedDims(const Tensor& x) const;

  kernels::ReduceOp op;
  Dims dims;  // empty: all
  bool keepdim;
};

// The input is contiguous.
struct SoftmaxPrimitive final : Cloneable<SoftmaxPrimitive> {
  SoftmaxPrimitive(bool log, int dim) : log(log), dim(dim) {}

  const char* name() const override { return log ? "log_softmax" : "softmax"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  void Visit(Fields& field) override { field("dim", dim); }

  bool log;  // the logarithm of it
  int dim;
};

// ---- matmul.h

struct MatMulPrimitive final : Cloneable<MatMulPrimitive> {
  const char* name() const override { return "matmul"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
};

// ---- joining.h

// The inputs are contiguous.
struct CatPrimitive final : Cloneable<CatPrimitive> {
  explicit CatPrimitive(int dim) : dim(dim) {}

  const char* name() const override { return "cat"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field("dim", dim); }

  int dim;
};

// The base of primitives that take an index along a dimension.
struct IndexBase : Primitive {
  IndexBase(kernels::IndexOp op, int dim) : op(op), dim(dim) {}

  bool MayFailLate(DType) const override { return true; }
  void Visit(Fields& field) override { field("dim", dim); }

  kernels::IndexOp op;
  int dim;
};

// The inputs, x and the index, are contiguous.
struct IndexPrimitive final : Cloneable<IndexPrimitive, IndexBase> {
  using Cloneable::Cloneable;

  const char* name() const override {
    return op == kernels::IndexOp::kGather ? "gather" : "index_select";
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
};

// The inputs, x, the index and the source, are contiguous; the source has the
// shape of IndexPrimitive's output. Applied in place to x, this takes one pass.
struct IndexAddPrimitive final : Cloneable<IndexAddPrimitive, IndexBase> {
  using Cloneable::Cloneable;

  const char* name() const override {
    return op == kernels::IndexOp::kGather ? "scatter_add" : "index_add";
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
};

// ---- copy.h, and the assignment to x[...]

// The input, broadcast to a shape and converted, on a device.
struct CopyPrimitive final : Cloneable<CopyPrimitive> {
  // name: of the function that copies, a literal. in_place: true for CopyTo.
  CopyPrimitive(const char* name, const ValueSpec& spec, bool in_place = false)
      : function(name), in_place(in_place), spec(spec) {}

  const char* name() const override { return function; }
  Effect effect() const override {
    return in_place ? Effect::kInPlace : Effect::kPure;
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field(spec); }

  const char* function;
  bool in_place;
  ValueSpec spec;  // of the output, to which the input broadcasts
};

// ---- creation.h

// The base of all creations: a shape, a dtype and a device, but no input.
struct Creation : Primitive {
  explicit Creation(const ValueSpec& spec) : spec(spec) {}

  ValueSpec Infer(Inputs inputs) const override;
  void Visit(Fields& field) override { field(spec); }

  ValueSpec spec;
};

struct EmptyPrimitive final : Cloneable<EmptyPrimitive, Creation> {
  using Cloneable::Cloneable;

  const char* name() const override { return "empty"; }
  Effect effect() const override { return Effect::kUninitialized; }
  std::uint64_t Launch(const LaunchContext&) const override;
  OpCost Cost(Inputs, const Tensor&) const override { return {}; }
};

struct FullPrimitive final : Cloneable<FullPrimitive, Creation> {
  // name: "ones", "full", a literal.
  FullPrimitive(const char* name, const ValueSpec& spec, Scalar value)
      : Cloneable(spec), function(name), value(value) {}

  const char* name() const override { return function; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field(spec)("fill_value", value); }

  const char* function;
  Scalar value;
};

struct ArangePrimitive final : Cloneable<ArangePrimitive, Creation> {
  ArangePrimitive(const ValueSpec& spec, Scalar start, Scalar step)
      : Cloneable(spec), start(start), step(step) {}

  const char* name() const override { return "arange"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override {
    field(spec)("start", start)("step", step);
  }

  Scalar start, step;
};

struct EyePrimitive final : Cloneable<EyePrimitive, Creation> {
  using Cloneable::Cloneable;

  const char* name() const override { return "eye"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
};

// Copies a staging buffer. A tracer that keeps it keeps the buffer.
struct FromVectorPrimitive final : Cloneable<FromVectorPrimitive, Creation> {
  FromVectorPrimitive(const ValueSpec& spec, StorageRef staging)
      : Cloneable(spec), staging(std::move(staging)) {}

  const char* name() const override { return "from_vector"; }
  Effect effect() const override { return Effect::kHostData; }
  std::uint64_t Launch(const LaunchContext& ctx) const override;

  StorageRef staging;
};

struct RandomPrimitive final : Cloneable<RandomPrimitive, Creation> {
  // Integers are from low to high - 1. per_device: with one seed, devices of
  // one type draw different sequences. Devices of one index, as cpu:0 and
  // cuda:0, still draw the same.
  RandomPrimitive(kernels::RandomOp op, const ValueSpec& spec,
                  std::int64_t low = 0, std::int64_t high = 1,
                  bool per_device = false)
      : Cloneable(spec), op(op), per_device(per_device), low(low), high(high) {}

  const char* name() const override { return OpName(op); }
  Effect effect() const override { return Effect::kRandom; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  void Visit(Fields& field) override;

  kernels::RandomOp op;
  bool per_device;
  std::int64_t low, high;
};

// ---- views.h

struct ReshapePrimitive final : Cloneable<ReshapePrimitive, ViewPrimitive> {
  // One size may be -1: whatever is left.
  explicit ReshapePrimitive(const Shape& shape) : shape(shape) {}

  const char* name() const override { return "view"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override { field("shape", shape); }

  Shape shape;
};

struct TransposePrimitive final : Cloneable<TransposePrimitive, ViewPrimitive> {
  TransposePrimitive(int dim0, int dim1) : dim0(dim0), dim1(dim1) {}

  const char* name() const override { return "transpose"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override { field("dim0", dim0)("dim1", dim1); }

  int dim0, dim1;
};

struct SlicePrimitive final : Cloneable<SlicePrimitive, ViewPrimitive> {
  SlicePrimitive(int dim, std::int64_t start, std::int64_t end,
                 std::int64_t step)
      : dim(dim), start(start), end(end), step(step) {}

  const char* name() const override { return "slice"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override {
    field("dim", dim)("start", start)("end", end)("step", step);
  }

  int dim;
  std::int64_t start, end, step;
};

struct SelectPrimitive final : Cloneable<SelectPrimitive, ViewPrimitive> {
  SelectPrimitive(int dim, std::int64_t index) : dim(dim), index(index) {}

  const char* name() const override { return "select"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override { field("dim", dim)("index", index); }

  int dim;
  std::int64_t index;
};

struct SqueezePrimitive final : Cloneable<SqueezePrimitive, ViewPrimitive> {
  static constexpr int kAllDims = kMaxRank;

  explicit SqueezePrimitive(int dim) : dim(dim) {}

  const char* name() const override { return "squeeze"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override {
    if (field.Has("dim", dim != kAllDims)) field("dim", dim);
  }

  int dim;
};

struct UnsqueezePrimitive final : Cloneable<UnsqueezePrimitive, ViewPrimitive> {
  explicit UnsqueezePrimitive(int dim) : dim(dim) {}

  const char* name() const override { return "unsqueeze"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override { field("dim", dim); }

  int dim;
};

struct ExpandPrimitive final : Cloneable<ExpandPrimitive, ViewPrimitive> {
  // A size of -1: as in the input.
  explicit ExpandPrimitive(const Shape& shape) : shape(shape) {}

  const char* name() const override { return "expand"; }
  Spec View(const Tensor& x) const override;
  void Visit(Fields& field) override { field("shape", shape); }

  Shape shape;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_PRIMITIVES_H_
