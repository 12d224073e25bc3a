#include "common/autograd/gradient_rules.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <typeinfo>

#include "common/autograd/rule_helpers.h"
#include "common/kernels/kernels.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitives.h"

namespace d2l {
namespace {

using kernels::BinaryOp;
using kernels::ReduceOp;
using kernels::UnaryOp;
using Which = BinaryPrimitive::Which;

// ---- Element-wise: a row for each operation.

// The values from which a gradient is computed, at the line of the forward
// operation: the gradient of the result, the operands, of which one may be a
// number, and the result. Values that the row does not read are undefined.
struct Terms {
  Line at;
  Operand dy, a, b, y;
};
using T = const Terms&;
using Gradient = Tensor (*)(T);

constexpr Reads kA = ReadsInput(0), kB = ReadsInput(1), kY = kReadsOutput;

template <typename RuleRow, std::size_t kRows, typename Op>
const RuleRow* Find(const RuleRow (&rows)[kRows], Op op) {
  for (const RuleRow& row : rows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

// The gradient of an activation, from its result.
template <BinaryOp kOp, Operand Terms::*kResult = &Terms::y>
Tensor FromResult(T t) {
  return Apply(BinaryPrimitive(kOp, Which::kNone, 0),
               {t.dy.tensor(), (t.*kResult).tensor()}, t.at);
}

// The density of the normal distribution at a.
Tensor Density(T t) {
  const Tensor square = t.a * t.a;
  const Tensor power = Exp(t.at(square) * -0.5, t.at);
  return t.at(power) * (1 / std::sqrt(2 * 3.14159265358979323846));
}

Tensor GeluGradient(T t) {
  // Not y / a, which loses the derivatives near 0.
  const Tensor cdf =
      Apply(UnaryPrimitive(UnaryOp::kNdtr), {t.a.tensor()}, t.at);
  const Tensor slope = t.at(cdf) + t.a * Density(t);
  return t.dy * slope;
}

Tensor AbsGradient(T t) {
  return Where(t.a < 0, -t.dy, Where(t.a > 0, t.dy, 0, t.at), t.at);
}

constexpr struct {
  UnaryOp op;
  Reads reads;
  Gradient gradient;
} kUnaryRows[] = {
    {UnaryOp::kNegative, 0, [](T t) { return -t.dy; }},
    {UnaryOp::kAbs, kA, AbsGradient},
    {UnaryOp::kRelu, kY, FromResult<BinaryOp::kReluGradient>},
    {UnaryOp::kSquare, kA, [](T t) { return t.dy * (t.a * 2); }},
    {UnaryOp::kExp, kY, [](T t) { return t.dy * t.y; }},
    {UnaryOp::kLog, kA, [](T t) { return t.dy / t.a; }},
    {UnaryOp::kSqrt, kY, [](T t) { return t.dy / (t.y * 2); }},
    {UnaryOp::kTanh, kY, FromResult<BinaryOp::kTanhGradient>},
    {UnaryOp::kSigmoid, kY, FromResult<BinaryOp::kSigmoidGradient>},
    {UnaryOp::kNdtr, kA, [](T t) { return t.dy * Density(t); }},
    {UnaryOp::kGelu, kA, GeluGradient},
};

// The gradients of powers, as PyTorch has them: 0 where a power is constant,
// even if a logarithm or a power in the formula is infinite.
Tensor PowBaseGradient(T t) {
  if (t.b.tensor() == nullptr) {
    const double power = t.b.scalar().To<double>();
    if (power == 0) return ZerosLike(*t.dy.tensor(), t.at);
    const Tensor slope = t.at(Pow(t.a, power - 1)) * power;
    return t.dy * slope;
  }
  const Tensor slope = t.b * Pow(t.a, t.b - 1);
  return Where(t.b == 0, 0, t.dy * slope, t.at);
}

Tensor PowExponentGradient(T t) {
  if (t.a.tensor() == nullptr) {
    const double base = t.a.scalar().To<double>();
    const Tensor dx = t.dy * (t.y * std::log(base));
    return base == 0 ? Where(t.b >= 0, 0, dx, t.at) : dx;
  }
  const Tensor base_is_zero = t.a == 0;
  const Tensor is_constant = t.at(base_is_zero) * (t.b >= 0);
  const Tensor slope = t.y * Log(*t.a.tensor(), t.at);
  return Where(is_constant, 0, t.dy * slope, t.at);
}

// Of a / b, for b: -(dy (a / b) / b).
Tensor DivisorGradient(T t) {
  const Tensor product = t.dy * (t.a / t.b);
  const Tensor quotient = t.at(product) / t.b;
  return -t.at(quotient);
}

// The gradient of a maximum or minimum for an operand that is not chosen where
// it is less, or greater. Each of two equals gets half, as in PyTorch.
template <bool kLess>
Tensor UnlessBeaten(T t) {
  return Where(kLess ? t.a < t.b : t.a > t.b, 0,
               Where(t.a == t.b, t.dy / 2, t.dy, t.at), t.at);
}

// Of the gradient a of a result, times the slope there, for the result b. The
// slopes are 1 - b b for tanh, and (1 - b) b for the sigmoid.
Tensor TanhSlopeGradient(T t) {
  const Tensor slope = t.b * -2;
  return t.dy * (t.a * slope);
}
Tensor SigmoidSlopeGradient(T t) {
  const Tensor slope = t.at(1) - t.b * 2;
  return t.dy * (t.a * slope);
}

Tensor PassOn(T t) { return *t.dy.tensor(); }

// The gradient of one of two operands. Without a function it is zeros.
struct Part {
  Reads reads;
  Gradient gradient;
};

constexpr struct {
  BinaryOp op;
  Part a, b;
} kBinaryRows[] = {
    {BinaryOp::kAdd, {0, PassOn}, {0, PassOn}},
    {BinaryOp::kSubtract, {0, PassOn}, {0, [](T t) { return -t.dy; }}},
    {BinaryOp::kMultiply,
     {kB, [](T t) { return t.dy * t.b; }},
     {kA, [](T t) { return t.dy * t.a; }}},
    {BinaryOp::kDivide,
     {kB, [](T t) { return t.dy / t.b; }},
     {kA | kB, DivisorGradient}},
    {BinaryOp::kPow,
     {kA | kB, PowBaseGradient},
     {kA | kB | kY, PowExponentGradient}},
    {BinaryOp::kMaximum,
     {kA | kB, UnlessBeaten<true>},
     {kA | kB, UnlessBeaten<false>}},
    {BinaryOp::kMinimum,
     {kA | kB, UnlessBeaten<false>},
     {kA | kB, UnlessBeaten<true>}},
    {BinaryOp::kReluGradient,
     {kB, FromResult<BinaryOp::kReluGradient, &Terms::b>},
     {0, nullptr}},
    {BinaryOp::kTanhGradient,
     {kB, FromResult<BinaryOp::kTanhGradient, &Terms::b>},
     {kA | kB, TanhSlopeGradient}},
    {BinaryOp::kSigmoidGradient,
     {kB, FromResult<BinaryOp::kSigmoidGradient, &Terms::b>},
     {kA | kB, SigmoidSlopeGradient}},
};

Reads UnaryReads(const Primitive& primitive, int) {
  return Find(kUnaryRows, As<UnaryPrimitive>(primitive).op)->reads;
}

Tensor UnaryGradient(const ForwardOp& op, int, const Tensor& dy) {
  const Line at(op);
  const UnaryOp unary = As<UnaryPrimitive>(op.primitive).op;
  return Find(kUnaryRows, unary)
      ->gradient({at, at(dy), at(op.input(0)), at(0), at(op.output())});
}

const Part& PartOf(const BinaryPrimitive& primitive, int input) {
  const auto& row = *Find(kBinaryRows, primitive.op);
  return input == 0 && primitive.which != Which::kFirst ? row.a : row.b;
}

Reads BinaryReads(const Primitive& primitive, int input) {
  const auto& binary = As<BinaryPrimitive>(primitive);
  const Which which = binary.which;
  const Reads reads = PartOf(binary, input).reads;
  if (which == Which::kNone) return reads;
  if (which == Which::kSecond) return reads & ~kB;
  // The scalar tells whether a constant base is 0; if not, y is enough.
  if (binary.op == BinaryOp::kPow && binary.scalar.To<double>() != 0) {
    return kY;
  }
  // b is the only input.
  return (reads & kY) | ((reads & kB) != 0 ? ReadsInput(0) : 0);
}

Tensor BinaryGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const auto& primitive = As<BinaryPrimitive>(op.primitive);
  const Gradient gradient = PartOf(primitive, input).gradient;
  if (gradient == nullptr) return {};
  const Line at(op);
  const auto operand = [&](Which number, int i) {
    return primitive.which == number ? at(primitive.scalar.To<double>())
                                     : at(op.input(i));
  };
  const int b = primitive.which == Which::kFirst ? 0 : 1;
  return gradient({at, at(dy), operand(Which::kFirst, 0),
                   operand(Which::kSecond, b), at(op.output())});
}

// Whether an operation has no row, although its class has rows.
bool LacksRow(const Primitive& primitive) {
  if (typeid(primitive) == typeid(UnaryPrimitive)) {
    return Find(kUnaryRows, As<UnaryPrimitive>(primitive).op) == nullptr;
  }
  return typeid(primitive) == typeid(BinaryPrimitive) &&
         Find(kBinaryRows, As<BinaryPrimitive>(primitive).op) == nullptr;
}

Tensor WhereGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const Line at(op);
  const bool is_a = input == 1 && !As<WherePrimitive>(op.primitive).a;
  return is_a ? Where(op.input(0), dy, 0, at) : Where(op.input(0), 0, dy, at);
}

// ---- Products and reductions.

Reads MatMulReads(const Primitive&, int input) { return ReadsInput(1 - input); }

// A vector counts as the matrix that it stands for.
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
    // Stored as b is, so that a weight whose transpose a layer multiplies with
    // gets its gradient row by row.
    return Transpose(MatMul(Transpose(product, -1, -2, at), other, at), -1, -2,
                     at);
  }
  const Tensor db = MatMul(transpose(a_is_vector, -1), product, at);
  return b_is_vector ? Squeeze(db, -1, at) : db;
}

Reads ReduceReads(const Primitive& primitive, int) {
  const ReduceOp op = As<ReducePrimitive>(primitive).op;
  const bool adds = op == ReduceOp::kSum || op == ReduceOp::kMean;
  return adds ? 0 : ReadsInput(0) | kReadsOutput;
}

Tensor ReduceGradient(const ForwardOp& op, int, const Tensor& dy) {
  const Line at(op);
  const auto& primitive = As<ReducePrimitive>(op.primitive);
  const Shape& shape = op.inputs[0].shape;
  Dims dims;
  for (const int dim : primitive.dims) {
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
  switch (primitive.op) {
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
      const Tensor shares = at(share) * chosen;
      return at(shares) / Sum(chosen, primitive.dims, /*keepdim=*/true, at);
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
  if (primitive.log) {
    return at(dy) - at(Exp(y, at)) * Sum(dy, primitive.dim, true, at);
  }
  return at(y) *
         (at(dy) - Sum(at(dy) * y, primitive.dim, /*keepdim=*/true, at));
}

// ---- Views, copies, joining, picking.

Tensor ReshapeGradient(const ForwardOp& op, int, const Tensor& dy) {
  return Reshape(dy, op.inputs[0].shape, op.at);
}

Tensor TransposeGradient(const ForwardOp& op, int, const Tensor& dy) {
  const auto& primitive = As<TransposePrimitive>(op.primitive);
  return Transpose(dy, primitive.dim0, primitive.dim1, op.at);
}

Tensor ExpandGradient(const ForwardOp&, int, const Tensor& dy) { return dy; }

Tensor SelectGradient(const ForwardOp& op, int, const Tensor& dy) {
  const auto& primitive = As<SelectPrimitive>(op.primitive);
  const Shape& shape = op.inputs[0].shape;
  const int dim = WrapDim(primitive.name(), primitive.dim, shape.rank());
  return PutInZeros(Unsqueeze(dy, dim, op.at), shape, dim, primitive.index, 1,
                    op.at);
}

Tensor SliceGradient(const ForwardOp& op, int, const Tensor& dy) {
  const auto& primitive = As<SlicePrimitive>(op.primitive);
  const Shape& shape = op.inputs[0].shape;
  const int dim = WrapDim(primitive.name(), primitive.dim, shape.rank());
  return PutInZeros(dy, shape, dim, primitive.start, primitive.step, op.at);
}

Tensor CopyGradient(const ForwardOp& op, int, const Tensor& dy) {
  const ValueSpec& x = op.inputs[0];
  // Avoids To's wait for a device of another kind.
  if (x.device == dy.device() && x.dtype == dy.dtype()) return dy;
  return Apply(CopyPrimitive("to", {dy.shape(), x.dtype, x.device}), {&dy},
               op.at);
}

Tensor CatGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const int dim = WrapDim("cat", As<CatPrimitive>(op.primitive).dim,
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
  ApplyInPlace(IndexAddPrimitive(primitive.op, primitive.dim),
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
  return Apply(IndexPrimitive(primitive.op, primitive.dim),
               {&from, &op.input(1)}, op.at);
}

Tensor AxpbyGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const auto& primitive = As<AxpbyPrimitive>(op.primitive);
  return Line(op)(dy) * (input == 0 ? primitive.beta : primitive.alpha);
}

}  // namespace

Tensor PutInZeros(const Tensor& x, const Shape& shape, int dim,
                  std::int64_t start, std::int64_t step, SourceLocation at) {
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != dim) (i < dim ? outer : inner) *= shape[i];
  }
  const auto zeros = [&](const Shape& size) {
    return Zeros(size, x.device(), x.dtype(), at);
  };
  const std::int64_t count = x.size(dim);
  Tensor y = Reshape(x, {outer, count, inner}, at);
  if (count > 1 && step > 1) {
    // Each element with its gap; the last gap may reach beyond the end.
    const Tensor gaps = zeros({outer, count, step - 1, inner});
    y = Reshape(Cat({Unsqueeze(y, 2, at), gaps}, 2, at),
                {outer, count * step, inner}, at);
    y = Slice(y, 1, 0, (count - 1) * step + 1, 1, at);
  }
  const std::int64_t size = shape[dim];
  start = std::clamp<std::int64_t>(start < 0 ? start + size : start, 0, size);
  const std::int64_t rest = size - start - y.size(1);
  y = Cat({zeros({outer, start, inner}), y, zeros({outer, rest, inner})}, 1,
          at);
  return Reshape(y, shape, at);
}

const Tensor& ForwardOp::input(int i) const {
  static const auto& none = *new Tensor;
  for (const SavedTensor& value : saved) {
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
    AddCheckpointRule(all);
    return all;
  }()};
  const auto found = rules.find(&typeid(primitive));
  return found == rules.end() || LacksRow(primitive) ? nullptr : &found->second;
}

}  // namespace d2l
