#include "common/ops/elementwise.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/ops/copy.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/reject.h"
#include "common/ops/views.h"

namespace d2l {
namespace {

using kernels::BinaryOp;
using kernels::UnaryOp;

void CheckScalarFits(const char* operation, Scalar value, DType dtype) {
  if (value.FitsIn(dtype)) return;
  Reject("[%s] the scalar %s is not a value of the tensor's dtype %s",
         operation, value, dtype);
}

void CheckSameDType(const char* operation, DType a, DType b) {
  if (a == b) return;
  Reject(
      "[%s] operands of two dtypes, %s and %s; convert one of them: To(x, "
      "DType)",
      operation, a, b);
}

Shape CheckedBroadcast(const char* operation, const Shape& a, const Shape& b,
                       DType dtype) {
  if (a == b) return a;
  const Shape shape = BroadcastShapes(operation, a, b);
  CheckedNumel(operation, shape, DTypeSize(dtype));
  return shape;
}

// The tensor, or the scalar if that is null.
kernels::Input ToInput(const Tensor* tensor, Scalar scalar) {
  return {tensor != nullptr ? tensor->data() : nullptr, scalar};
}

[[noreturn]] void ThrowNoTensor(const char* operation, SourceLocation at) {
  RejectAt(at, "[%s] one operand must be a tensor", operation);
}

}  // namespace

ValueSpec BinaryPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, which == Which::kNone ? 2 : 1);
  const Tensor& a = *inputs[0];
  if (!OpTakes(op, a.dtype())) CheckFloatingPoint(name(), a);
  const DType result = ResultDType(op, a.dtype());
  if (which != Which::kNone) {
    CheckScalarFits(name(), scalar, a.dtype());
    if (op == BinaryOp::kPow && which == Which::kSecond &&
        !IsFloatingPoint(a.dtype()) && scalar.To<std::int64_t>() < 0) {
      Reject(
          "[pow] integers to a negative power, %s; convert them: To(x, "
          "DType::kFloat32)",
          scalar);
    }
    return {a.shape(), result, a.device()};
  }
  const Tensor& b = *inputs[1];
  CheckSameDType(name(), a.dtype(), b.dtype());
  return {CheckedBroadcast(name(), a.shape(), b.shape(), a.dtype()), result,
          a.device()};
}

std::uint64_t BinaryPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor* a = which == Which::kFirst ? nullptr : ctx.inputs[0];
  const Tensor* b = which == Which::kSecond  ? nullptr
                    : which == Which::kFirst ? ctx.inputs[0]
                                             : ctx.inputs[1];
  const LaunchLayout layout(ctx.output, {a, b});
  return Enqueue(
      ctx, kernels::BinaryArgs{op, ctx.inputs[0]->dtype(), ctx.output.numel(),
                               ctx.output.data(), ToInput(a, scalar),
                               ToInput(b, scalar), layout.get()});
}

void BinaryPrimitive::Visit(Fields& field) {
  if (field.Has("first", which == Which::kFirst)) {
    which = Which::kFirst;
    field("first", scalar);
  } else if (field.Has("second", which == Which::kSecond)) {
    which = Which::kSecond;
    field("second", scalar);
  }
}

ValueSpec UnaryPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 1);
  const Tensor& x = *inputs[0];
  if (!OpTakes(op, x.dtype())) CheckFloatingPoint(name(), x);
  return {x.shape(), x.dtype(), x.device()};
}

std::uint64_t UnaryPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[0];
  const LaunchLayout layout(ctx.output, {&x});
  return Enqueue(ctx,
                 kernels::UnaryArgs{op, ctx.output.dtype(), ctx.output.numel(),
                                    ctx.output.data(), x.data(), layout.get()});
}

ValueSpec WherePrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 1 + !a.has_value() + !b.has_value());
  if (a.has_value() && b.has_value()) {
    Reject("[where] one of the two must be a tensor");
  }
  const Tensor& condition = *inputs[0];
  const Tensor& first = *inputs[1];
  const DType dtype = first.dtype();
  if (condition.dtype() != DType::kUInt8) {
    Reject(
        "[where] the condition must be uint8, as comparisons give it; got %s",
        condition);
  }
  if (a.has_value()) CheckScalarFits(name(), *a, dtype);
  if (b.has_value()) CheckScalarFits(name(), *b, dtype);
  Shape shape =
      CheckedBroadcast(name(), condition.shape(), first.shape(), dtype);
  if (!a.has_value() && !b.has_value()) {
    CheckSameDType(name(), dtype, inputs[2]->dtype());
    shape = CheckedBroadcast(name(), shape, inputs[2]->shape(), dtype);
  }
  return {shape, dtype, condition.device()};
}

std::uint64_t WherePrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor* const condition = ctx.inputs[0];
  const Tensor* const in_a = a.has_value() ? nullptr : ctx.inputs[1];
  const Tensor* const in_b =
      b.has_value() ? nullptr : ctx.inputs[a.has_value() ? 1 : 2];
  const LaunchLayout layout(ctx.output, {condition, in_a, in_b});
  return Enqueue(
      ctx, kernels::WhereArgs{ctx.output.dtype(), ctx.output.numel(),
                              ctx.output.data(), condition->data(),
                              ToInput(in_a, a.value_or(0)),
                              ToInput(in_b, b.value_or(0)), layout.get()});
}

ValueSpec AxpbyPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 2);
  const Tensor& y = *inputs[0];
  const Tensor& x = *inputs[1];
  CheckFloatingPoint(name(), y);
  CheckContiguous(name(), y);
  CheckContiguous(name(), x);
  if (x.shape() != y.shape() || x.dtype() != y.dtype()) {
    Reject("[%s] two tensors of one shape and dtype wanted; got %s and %s",
           name(), y, x);
  }
  return {y.shape(), y.dtype(), y.device()};
}

std::uint64_t AxpbyPrimitive::Launch(const LaunchContext& ctx) const {
  if (ctx.inputs.size() > 2) {  // of ApplyEachInPlace
    std::vector<kernels::AxpbyPart> parts;
    parts.reserve(ctx.inputs.size() / 2);
    for (std::size_t i = 0; i < ctx.inputs.size(); i += 2) {
      const Tensor& y = *ctx.inputs[i];
      parts.push_back({y.numel(), y.data(), ctx.inputs[i + 1]->data()});
    }
    return Enqueue(
        ctx, kernels::AxpbyListArgs{ctx.output.dtype(), alpha, beta, parts});
  }
  CopyUnlessSame(ctx);
  return Enqueue(
      ctx, kernels::AxpbyArgs{ctx.output.dtype(), ctx.output.numel(), alpha,
                              beta, ctx.output.data(), ctx.inputs[1]->data()});
}

ValueSpec FillPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 0);
  CheckScalarFits(name(), value, spec.dtype);
  return spec;
}

std::uint64_t FillPrimitive::Launch(const LaunchContext& ctx) const {
  const LaunchLayout layout(ctx.output, {});
  return Enqueue(ctx,
                 kernels::FillArgs{ctx.output.dtype(), ctx.output.numel(),
                                   ctx.output.data(), value, layout.get()});
}

namespace {

using Which = BinaryPrimitive::Which;

// The line of the operation is that of its first operand: if `x * y + 2` is
// written over two lines, that is where it begins.
Tensor ApplyBinary(BinaryOp op, const Operand& a, const Operand& b) {
  if (a.tensor() != nullptr) {
    if (b.tensor() != nullptr) {
      return Apply(BinaryPrimitive(op, Which::kNone, 0),
                   {a.tensor(), b.tensor()}, a.at());
    }
    return Apply(BinaryPrimitive(op, Which::kSecond, b.scalar()), {a.tensor()},
                 a.at());
  }
  if (b.tensor() == nullptr) ThrowNoTensor(OpName(op), a.at());
  return Apply(BinaryPrimitive(op, Which::kFirst, a.scalar()), {b.tensor()},
               a.at());
}

Tensor& ApplyBinaryInPlace(BinaryOp op, Tensor& x, const Operand& y) {
  if (y.tensor() == nullptr) {
    ApplyInPlace(BinaryPrimitive(op, Which::kSecond, y.scalar()), {&x}, x,
                 y.at());
    return x;
  }
  if (OverlapOf(x, *y.tensor()) == Overlap::kPossible) {
    return ApplyBinaryInPlace(op, x, {Clone(*y.tensor(), y.at()), y.at()});
  }
  ApplyInPlace(BinaryPrimitive(op, Which::kNone, 0), {&x, y.tensor()}, x,
               y.at());
  return x;
}

}  // namespace

// A function for each row of op_tables.h that users call.
#define D2L_BINARY(Function, kOp)                       \
  Tensor Function(const Operand& a, const Operand& b) { \
    return ApplyBinary(BinaryOp::kOp, a, b);            \
  }
#define D2L_BINARY_IN_PLACE(Function, kOp)          \
  Tensor& Function(Tensor& x, const Operand& y) {   \
    return ApplyBinaryInPlace(BinaryOp::kOp, x, y); \
  }
// The name of the function is that of the enumerator.
#define D2L_UNARY(Function)                                       \
  Tensor Function(const Tensor& x, SourceLocation at) {           \
    return Apply(UnaryPrimitive(UnaryOp::k##Function), {&x}, at); \
  }

D2L_BINARY(operator+, kAdd)
D2L_BINARY(operator-, kSubtract)
D2L_BINARY(operator*, kMultiply)
D2L_BINARY(operator/, kDivide)
D2L_BINARY(FloorDivide, kFloorDivide)
D2L_BINARY(Pow, kPow)
D2L_BINARY(Maximum, kMaximum)
D2L_BINARY(Minimum, kMinimum)
D2L_BINARY(operator==, kEqual)
D2L_BINARY(operator!=, kNotEqual)
D2L_BINARY(operator<, kLess)
D2L_BINARY(operator<=, kLessEqual)
D2L_BINARY(operator>, kGreater)
D2L_BINARY(operator>=, kGreaterEqual)

D2L_BINARY_IN_PLACE(operator+=, kAdd)
D2L_BINARY_IN_PLACE(operator-=, kSubtract)
D2L_BINARY_IN_PLACE(operator*=, kMultiply)
D2L_BINARY_IN_PLACE(operator/=, kDivide)

D2L_UNARY(Abs)
D2L_UNARY(Relu)
D2L_UNARY(Square)
D2L_UNARY(Exp)
D2L_UNARY(Log)
D2L_UNARY(Sqrt)
D2L_UNARY(Tanh)
D2L_UNARY(Sigmoid)
D2L_UNARY(Gelu)

Tensor operator-(const Operand& x) {
  if (x.tensor() == nullptr) ThrowNoTensor("neg", x.at());
  return Apply(UnaryPrimitive(UnaryOp::kNegative), {x.tensor()}, x.at());
}

Tensor Where(const Tensor& condition, const Operand& a, const Operand& b,
             SourceLocation at) {
  const auto scalar = [](const Operand& x) {
    return x.tensor() == nullptr ? std::make_optional(x.scalar())
                                 : std::nullopt;
  };
  const WherePrimitive primitive(scalar(a), scalar(b));
  if (a.tensor() != nullptr && b.tensor() != nullptr) {
    return Apply(primitive, {&condition, a.tensor(), b.tensor()}, at);
  }
  const Tensor* only = a.tensor() != nullptr ? a.tensor() : b.tensor();
  if (only == nullptr) ThrowNoTensor("where", at);
  return Apply(primitive, {&condition, only}, at);
}

void AxpbyInPlace(const Tensor& y, double alpha, const Tensor& x, double beta,
                  SourceLocation at) {
  CheckDefined("axpby", y, at);
  CheckDefined("axpby", x, at);
  if (y.is_contiguous()) {
    const bool overlaps = OverlapOf(y, x) == Overlap::kPossible;
    const Tensor from = overlaps ? Clone(x, at) : Contiguous(x, at);
    ApplyInPlace(AxpbyPrimitive(alpha, beta), {&y, &from}, y, at);
  } else {
    const Tensor from = Contiguous(x, at), before = Contiguous(y, at);
    CopyTo(Apply(AxpbyPrimitive(alpha, beta), {&before, &from}, at), y,
           /*non_blocking=*/true, at);
  }
}

namespace {

// Whether no y overlaps an operand of another, or a part of its own.
bool AreApart(absl::Span<const Tensor> ys, absl::Span<const Tensor> xs) {
  struct Extent {
    const char* begin;
    const char* end;
    bool is_y;
  };
  std::vector<Extent> extents;
  extents.reserve(2 * ys.size());
  const auto add = [&extents](const Tensor& x, bool is_y) {
    if (x.numel() == 0) return;
    const auto* const begin = static_cast<const char*>(x.data());
    extents.push_back({begin, begin + x.span() * DTypeSize(x.dtype()), is_y});
  };
  for (std::size_t i = 0; i < ys.size(); ++i) {
    add(ys[i], true);
    if (!IsSameView(xs[i], ys[i])) add(xs[i], false);
  }
  std::sort(extents.begin(), extents.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  const char *end = nullptr, *end_of_y = nullptr;
  for (const Extent& extent : extents) {
    if (extent.begin < (extent.is_y ? end : end_of_y)) return false;
    end = std::max(end, extent.end);
    if (extent.is_y) end_of_y = std::max(end_of_y, extent.end);
  }
  return true;
}

}  // namespace

void AxpbyInPlace(absl::Span<const Tensor> ys, double alpha,
                  absl::Span<const Tensor> xs, double beta, SourceLocation at) {
  if (ys.size() != xs.size()) {
    RejectAt(at, "[axpby] an x for each of %d tensors wanted; got %d",
             ys.size(), xs.size());
  }
  for (std::size_t i = 0; i < ys.size(); ++i) {
    CheckDefined("axpby", ys[i], at);
    CheckDefined("axpby", xs[i], at);
  }
  const bool apart = ys.size() > 1 && AreApart(ys, xs);
  std::vector<Tensor> dense;  // copies of strided x
  std::vector<const Tensor*> pairs;
  pairs.reserve(2 * ys.size());
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (apart && ys[i].is_contiguous()) {
      const Tensor* x = &xs[i];
      if (!x->is_contiguous()) {
        if (dense.empty()) dense.reserve(xs.size());  // pairs point into it
        x = &dense.emplace_back(Contiguous(*x, at));
      }
      pairs.insert(pairs.end(), {&ys[i], x});
    } else {
      AxpbyInPlace(ys[i], alpha, xs[i], beta, at);
    }
  }
  // Those like the first go together, then those like the first of the others.
  for (auto first = pairs.begin(); first != pairs.end();) {
    auto end = first;
    for (auto pair = first; pair != pairs.end(); pair += 2) {
      if ((*pair)->device() != (*first)->device() ||
          (*pair)->dtype() != (*first)->dtype()) {
        continue;
      }
      std::rotate(end, pair, pair + 2);
      end += 2;
    }
    ApplyEachInPlace(AxpbyPrimitive(alpha, beta),
                     {&*first, static_cast<std::size_t>(end - first)},
                     (end - first) / 2, at);
    first = end;
  }
}

void FillInPlace(const Tensor& x, Scalar value, SourceLocation at) {
  if (!x.defined()) RejectAt(at, "[fill_] the tensor is undefined");
  // An element that is repeated (expanded) is filled once.
  Tensor target = x;
  for (int i = 0; i < x.dim(); ++i) {
    if (x.strides()[i] == 0 && x.size(i) > 1) {
      target = Slice(target, i, 0, 1, 1, at);
    }
  }
  ApplyInPlace(
      FillPrimitive({target.shape(), target.dtype(), target.device()}, value),
      {}, target, at);
}

}  // namespace d2l
