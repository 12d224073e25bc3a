#include "common/autograd/gradient_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <typeinfo>

#include "common/autograd/rule_helpers.h"
#include "common/kernels/kernels.h"
#include "common/ops/copy_primitives.h"
#include "common/ops/elementwise_primitives.h"
#include "common/ops/joining_primitives.h"
#include "common/ops/matmul_primitives.h"
#include "common/ops/ops.h"
#include "common/ops/reduction_primitives.h"
#include "common/ops/view_primitives.h"

namespace d2l {
namespace {

using kernels::BinaryOp;
using kernels::ReduceOp;
using kernels::UnaryOp;
using Which = BinaryPrimitive::Which;

// ---- Element-wise.

Reads UnaryReads(const Primitive& primitive, int) {
  switch (As<UnaryPrimitive>(primitive).op()) {
    case UnaryOp::kAbs:
    case UnaryOp::kSquare:
    case UnaryOp::kLog:
    case UnaryOp::kNdtr:
    case UnaryOp::kGelu:
      return ReadsInput(0);
    case UnaryOp::kRelu:
    case UnaryOp::kExp:
    case UnaryOp::kSqrt:
    case UnaryOp::kTanh:
    case UnaryOp::kSigmoid:
      return kReadsOutput;
    case UnaryOp::kNegative:
    case UnaryOp::kCount:
      break;
  }
  return 0;
}

// The gradient of an activation, from the result.
Tensor FromResult(BinaryOp op, const Tensor& dy, const Tensor& y,
                  SourceLocation at) {
  return Apply(BinaryPrimitive(op, Which::kNone, 0), {&dy, &y}, at);
}

// Of the normal distribution.
Tensor Density(const Tensor& x, Line at) {
  return at(Exp(at(at(x) * x) * -0.5, at)) *
         (1 / std::sqrt(2 * 3.14159265358979323846));
}

Tensor UnaryGradient(const ForwardOp& op, int, const Tensor& dy) {
  const Line at(op);
  const Tensor& x = op.input(0);
  const Tensor& y = op.output();
  switch (As<UnaryPrimitive>(op.primitive).op()) {
    case UnaryOp::kNegative:
      return -at(dy);
    case UnaryOp::kAbs:
      return Where(at(x) < 0, -at(dy), Where(at(x) > 0, dy, 0, at), at);
    case UnaryOp::kRelu:
      return FromResult(BinaryOp::kReluGradient, dy, y, at);
    case UnaryOp::kSquare:
      return at(dy) * (at(x) * 2);
    case UnaryOp::kExp:
      return at(dy) * y;
    case UnaryOp::kLog:
      return at(dy) / x;
    case UnaryOp::kSqrt:
      return at(dy) / (at(y) * 2);
    case UnaryOp::kTanh:
      return FromResult(BinaryOp::kTanhGradient, dy, y, at);
    case UnaryOp::kSigmoid:
      return FromResult(BinaryOp::kSigmoidGradient, dy, y, at);
    case UnaryOp::kNdtr:
      return at(dy) * Density(x, at);
    case UnaryOp::kGelu: {
      // Not y / x, of which the derivatives near 0 are lost.
      const Tensor cdf = Apply(UnaryPrimitive(UnaryOp::kNdtr), {&x}, at);
      return at(dy) * (at(cdf) + at(x) * Density(x, at));
    }
    case UnaryOp::kCount:
      break;
  }
  return {};
}

// The operands of a binary primitive, one of which may be its scalar.
struct Operands {
  Operands(const ForwardOp& op, const BinaryPrimitive& primitive, Line at)
      : a(primitive.which() == Which::kFirst
              ? at(primitive.scalar().To<double>())
              : at(op.input(0))),
        b(primitive.which() == Which::kSecond
              ? at(primitive.scalar().To<double>())
              : at(op.input(primitive.which() == Which::kFirst ? 0 : 1))) {}

  const Operand a;
  const Operand b;
};

// Whether an input is the first operand.
bool IsFirst(const BinaryPrimitive& primitive, int input) {
  return input == 0 && primitive.which() != Which::kFirst;
}

Reads BinaryReads(const Primitive& primitive, int input) {
  const auto& binary = As<BinaryPrimitive>(primitive);
  const Which which = binary.which();
  const Reads a = which == Which::kFirst ? 0 : ReadsInput(0);
  const Reads b =
      which == Which::kSecond ? 0 : ReadsInput(which == Which::kFirst ? 0 : 1);
  const bool first = IsFirst(binary, input);
  switch (binary.op()) {
    case BinaryOp::kMultiply:
      return first ? b : a;
    case BinaryOp::kDivide:
      return first ? b : a | b;
    case BinaryOp::kPow:
      if (first) return a | b;
      // See PowGradient: whether a constant base is 0, its scalar says.
      if (which == Which::kFirst && binary.scalar().To<double>() != 0) {
        return kReadsOutput;
      }
      return a | b | kReadsOutput;
    case BinaryOp::kMaximum:
    case BinaryOp::kMinimum:
      return a | b;
    case BinaryOp::kReluGradient:
      return first ? b : 0;
    case BinaryOp::kTanhGradient:
    case BinaryOp::kSigmoidGradient:
      return first ? b : a | b;
    default:
      return 0;
  }
}

// As PyTorch has it: where a power is constant, 0, even if a logarithm or a
// power in the formula is infinite.
Tensor PowGradient(const Operands& in, bool first, const Tensor& y,
                   const Tensor& dy, Line at) {
  if (first && in.b.tensor() == nullptr) {
    const double power = in.b.scalar().To<double>();
    if (power == 0) return ZerosLike(dy, at);
    return at(dy) * (at(Pow(in.a, power - 1)) * power);
  }
  if (first) {
    const Tensor slope = in.b * Pow(in.a, in.b - 1);
    return Where(in.b == 0, 0, at(dy) * slope, at);
  }
  if (in.a.tensor() == nullptr) {
    const double base = in.a.scalar().To<double>();
    const Tensor dx = at(dy) * (at(y) * std::log(base));
    return base == 0 ? Where(in.b >= 0, 0, dx, at) : dx;
  }
  const Tensor constant = at(in.a == 0) * (in.b >= 0);
  return Where(constant, 0, at(dy) * (at(y) * Log(*in.a.tensor(), at)), at);
}

Tensor BinaryGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const Line at(op);
  const auto& primitive = As<BinaryPrimitive>(op.primitive);
  const Operands in(op, primitive, at);
  const bool first = IsFirst(primitive, input);
  switch (primitive.op()) {
    case BinaryOp::kAdd:
      return dy;
    case BinaryOp::kSubtract:
      return first ? dy : -at(dy);
    case BinaryOp::kMultiply:
      return at(dy) * (first ? in.b : in.a);
    case BinaryOp::kDivide:
      if (first) return at(dy) / in.b;
      return -at(at(at(dy) * (in.a / in.b)) / in.b);
    case BinaryOp::kPow:
      return PowGradient(in, first, op.output(), dy, at);
    case BinaryOp::kMaximum:
    case BinaryOp::kMinimum: {
      // Each of two equals gets half, as in PyTorch.
      const bool less = first == (primitive.op() == BinaryOp::kMaximum);
      return Where(less ? in.a < in.b : in.a > in.b, 0,
                   Where(in.a == in.b, at(dy) / 2, dy, at), at);
    }
    case BinaryOp::kReluGradient:
      if (!first) return {};
      return FromResult(primitive.op(), dy, *in.b.tensor(), at);
    case BinaryOp::kTanhGradient:
      if (first) return FromResult(primitive.op(), dy, *in.b.tensor(), at);
      return at(dy) * (in.a * (in.b * -2));
    case BinaryOp::kSigmoidGradient:
      if (first) return FromResult(primitive.op(), dy, *in.b.tensor(), at);
      return at(dy) * (in.a * (1 - in.b * 2));
    default:
      return {};
  }
}

Tensor WhereGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const Line at(op);
  const bool is_a = input == 1 && !As<WherePrimitive>(op.primitive).a();
  return is_a ? Where(op.input(0), dy, 0, at) : Where(op.input(0), 0, dy, at);
}

// ---- Products and reductions.

Reads MatMulReads(const Primitive&, int input) { return ReadsInput(1 - input); }

// Of a vector, as the matrix that it stands for.
Tensor MatMulGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const Line at(op);
  const bool a_is_vector = op.inputs[0].shape.rank() == 1;
  const bool b_is_vector = op.inputs[1].shape.rank() == 1;
  Tensor product = dy;
  if (b_is_vector) product = Unsqueeze(product, -1, at);
  if (a_is_vector) product = Unsqueeze(product, -2, at);
  const Tensor& other = op.input(1 - input);
  const auto transpose = [&](bool is_vector, int dim) {
    return is_vector ? Unsqueeze(other, dim, at) : Transpose(other, -1, -2, at);
  };
  if (input == 0) return MatMul(product, transpose(b_is_vector, 0), at);
  if ((op.transposed & ReadsInput(1)) != 0 && !a_is_vector) {
    // Stored as b is, so that the weight of which a layer multiplies with the
    // transpose gets its gradient row by row.
    return Transpose(MatMul(Transpose(product, -1, -2, at), other, at), -1, -2,
                     at);
  }
  const Tensor db = MatMul(transpose(a_is_vector, -1), product, at);
  return b_is_vector ? Squeeze(db, -1, at) : db;
}

Reads ReduceReads(const Primitive& primitive, int) {
  const ReduceOp op = As<ReducePrimitive>(primitive).op();
  const bool adds = op == ReduceOp::kSum || op == ReduceOp::kMean;
  return adds ? 0 : ReadsInput(0) | kReadsOutput;
}

Tensor ReduceGradient(const ForwardOp& op, int, const Tensor& dy) {
  const Line at(op);
  const auto& primitive = As<ReducePrimitive>(op.primitive);
  const Shape& shape = op.inputs[0].shape;
  Dims dims;
  for (const int dim : primitive.dims()) {
    dims.Add(WrapDim(primitive.name(), dim, shape.rank()));
  }
  Shape kept = shape;  // with keepdim
  double count = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!dims.empty() && std::find(dims.begin(), dims.end(), i) == dims.end()) {
      continue;
    }
    count *= static_cast<double>(shape[i]);
    kept[i] = 1;
  }
  const Tensor share = Reshape(dy, kept, at);
  switch (primitive.op()) {
    case ReduceOp::kSum:
      return Expand(share, shape, at);
    case ReduceOp::kMean:
      return Expand(at(share) / count, shape, at);
    case ReduceOp::kMax:
    case ReduceOp::kMin: {
      // As in PyTorch's amax: equals share it, and if NaN is chosen, which
      // equals nothing, all are NaN.
      const Tensor equal = at(op.input(0)) == Reshape(op.output(), kept, at);
      const Tensor chosen = To(equal, dy.dtype(), at);
      return at(at(share) * chosen) / Sum(chosen, primitive.dims(), true, at);
    }
    case ReduceOp::kArgMax:
      break;
  }
  return {};
}

Tensor SoftmaxGradient(const ForwardOp& op, int, const Tensor& dy) {
  const Line at(op);
  const auto& primitive = As<SoftmaxPrimitive>(op.primitive);
  const Tensor& y = op.output();
  if (primitive.log()) {
    return at(dy) - at(Exp(y, at)) * Sum(dy, primitive.dim(), true, at);
  }
  return at(y) *
         (at(dy) - Sum(at(dy) * y, primitive.dim(), /*keepdim=*/true, at));
}

// ---- Views, copies, joining, picking.

Tensor ReshapeGradient(const ForwardOp& op, int, const Tensor& dy) {
  return Reshape(dy, op.inputs[0].shape, op.at);
}

Tensor TransposeGradient(const ForwardOp& op, int, const Tensor& dy) {
  const auto& primitive = As<TransposePrimitive>(op.primitive);
  return Transpose(dy, primitive.dim0(), primitive.dim1(), op.at);
}

Tensor ExpandGradient(const ForwardOp&, int, const Tensor& dy) { return dy; }

Tensor SelectGradient(const ForwardOp& op, int, const Tensor& dy) {
  const auto& primitive = As<SelectPrimitive>(op.primitive);
  const Shape& shape = op.inputs[0].shape;
  const int dim = WrapDim(primitive.name(), primitive.dim(), shape.rank());
  return PutInZeros(Unsqueeze(dy, dim, op.at), shape, dim, primitive.index(), 1,
                    op.at);
}

Tensor SliceGradient(const ForwardOp& op, int, const Tensor& dy) {
  const auto& primitive = As<SlicePrimitive>(op.primitive);
  const Shape& shape = op.inputs[0].shape;
  const int dim = WrapDim(primitive.name(), primitive.dim(), shape.rank());
  return PutInZeros(dy, shape, dim, primitive.start(), primitive.step(), op.at);
}

Tensor CopyGradient(const ForwardOp& op, int, const Tensor& dy) {
  const ValueSpec& x = op.inputs[0];
  // Without To's wait for a device of another kind.
  if (x.device == dy.device() && x.dtype == dy.dtype()) return dy;
  return Apply(CopyPrimitive("to", {dy.shape(), x.dtype, x.device}), {&dy},
               op.at);
}

Tensor CatGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const int dim = WrapDim("cat", As<CatPrimitive>(op.primitive).dim(),
                          op.inputs[0].shape.rank());
  std::int64_t start = 0;
  for (int i = 0; i < input; ++i) start += op.inputs[i].shape[dim];
  return Slice(dy, dim, start, start + op.inputs[input].shape[dim], 1, op.at);
}

Tensor IndexGradient(const ForwardOp& op, int, const Tensor& dy) {
  const auto& primitive = As<IndexPrimitive>(op.primitive);
  const ValueSpec& x = op.inputs[0];
  const Tensor dx = Zeros(x.shape, x.device, x.dtype, op.at);
  const Tensor source = Contiguous(dy, op.at);
  ApplyInPlace(IndexAddPrimitive(primitive.op(), primitive.dim()),
               {&dx, &op.input(1), &source}, dx, op.at);
  return dx;
}

Reads IndexAddReads(const Primitive&, int input) {
  return input == 2 ? ReadsInput(1) : 0;
}

Tensor IndexAddGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const auto& primitive = As<IndexAddPrimitive>(op.primitive);
  if (input == 0) return dy;
  const Tensor from = Contiguous(dy, op.at);
  return Apply(IndexPrimitive(primitive.op(), primitive.dim()),
               {&from, &op.input(1)}, op.at);
}

Tensor AxpbyGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const auto& primitive = As<AxpbyPrimitive>(op.primitive);
  return Line(op)(dy) * (input == 0 ? primitive.beta() : primitive.alpha());
}

}  // namespace

const Tensor& ForwardOp::input(int i) const {
  static const auto& none = *new Tensor;
  for (const SavedValue& value : saved) {
    if (value.which == i) return value.value;
  }
  return none;
}

const GradientRule* FindGradientRule(const Primitive& primitive) {
  static const auto& rules = *new GradientRules{[] {
    GradientRules all = {
        {&typeid(UnaryPrimitive), {UnaryReads, UnaryGradient}},
        {&typeid(BinaryPrimitive), {BinaryReads, BinaryGradient}},
        {&typeid(WherePrimitive), {Always<ReadsInput(0)>, WhereGradient}},
        {&typeid(MatMulPrimitive), {MatMulReads, MatMulGradient}},
        {&typeid(ReducePrimitive), {ReduceReads, ReduceGradient}},
        {&typeid(SoftmaxPrimitive), {Always<kReadsOutput>, SoftmaxGradient}},
        {&typeid(ReshapePrimitive), {Always<0>, ReshapeGradient}},
        {&typeid(SqueezePrimitive), {Always<0>, ReshapeGradient}},
        {&typeid(UnsqueezePrimitive), {Always<0>, ReshapeGradient}},
        {&typeid(TransposePrimitive), {Always<0>, TransposeGradient}},
        {&typeid(ExpandPrimitive), {Always<0>, ExpandGradient}},
        {&typeid(SelectPrimitive), {Always<0>, SelectGradient}},
        {&typeid(SlicePrimitive), {Always<0>, SliceGradient}},
        {&typeid(CopyPrimitive), {Always<0>, CopyGradient}},
        {&typeid(CatPrimitive), {Always<0>, CatGradient}},
        {&typeid(IndexPrimitive), {Always<ReadsInput(1)>, IndexGradient}},
        {&typeid(IndexAddPrimitive), {IndexAddReads, IndexAddGradient}},
        {&typeid(AxpbyPrimitive), {Always<0>, AxpbyGradient}},
    };
    AddNnGradientRules(all);
    return all;
  }()};
  const auto found = rules.find(&typeid(primitive));
  const bool none =
      found == rules.end() ||
      (found->first == &typeid(BinaryPrimitive) &&
       As<BinaryPrimitive>(primitive).op() == BinaryOp::kFloorDivide);
  return none ? nullptr : &found->second;
}

}  // namespace d2l
