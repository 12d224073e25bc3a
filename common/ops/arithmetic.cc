#include "common/ops/arithmetic.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/kernels/kernels.h"
#include "common/ops/primitive.h"

namespace d2l {
namespace {

using kernels::BinaryOp;

const char* NameOf(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "add";
    case BinaryOp::kSubtract:
      return "sub";
    case BinaryOp::kMultiply:
      break;
  }
  return "mul";
}

kernels::Kernels& KernelsOf(const Stream& stream) {
  return kernels::GetKernels(stream.device().type());
}

void CheckScalarFits(const char* operation, double value, DType dtype) {
  if (IsFloatingPoint(dtype)) return;
  // 2^63 is the first double beyond int64.
  const bool fits =
      dtype == DType::kUInt8
          ? value >= 0 && value <= std::numeric_limits<std::uint8_t>::max()
          : value >= -0x1p63 && value < 0x1p63;
  if (!fits || value != std::trunc(value)) {
    throw std::invalid_argument(absl::StrFormat(
        "[%s] the scalar %g is not a value of the tensor's dtype %s", operation,
        value, DTypeName(dtype)));
  }
}

// Strides of `input` as seen from the broadcast shape `out`.
Shape BroadcastStrides(const Tensor& input, const Shape& out) {
  Shape strides = Shape::Filled(out.rank(), 0);
  const int missing = out.rank() - input.dim();
  for (int i = 0; i < input.dim(); ++i) {
    if (input.size(i) != 1) strides[missing + i] = input.strides()[i];
  }
  return strides;
}

// A function of two operands, one of which may be a scalar.
class BinaryPrimitive final : public Primitive {
 public:
  enum class Scalar { kNone, kFirst, kSecond };

  BinaryPrimitive(BinaryOp op, Scalar which, double scalar)
      : op_(op), which_(which), scalar_(scalar) {}

  const char* name() const override { return NameOf(op_); }

  ValueSpec Infer(Inputs inputs) const override {
    const Tensor& a = *inputs[0];
    if (which_ != Scalar::kNone) {
      CheckScalarFits(name(), scalar_, a.dtype());
      return {a.shape(), a.dtype(), a.device()};
    }
    const Tensor& b = *inputs[1];
    if (a.dtype() != b.dtype()) {
      throw std::invalid_argument(
          absl::StrFormat("[%s] operands of two dtypes, %s and %s; convert "
                          "one of them",
                          name(), DTypeName(a.dtype()), DTypeName(b.dtype())));
    }
    if (a.shape() == b.shape()) return {a.shape(), a.dtype(), a.device()};
    const Shape shape = BroadcastShapes(name(), a.shape(), b.shape());
    CheckedNumel(name(), shape, DTypeSize(a.dtype()));
    return {shape, a.dtype(), a.device()};
  }

  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       const Tensor& output) const override {
    kernels::BinaryArgs args{
        op_, output.dtype(), output.numel(), output.data(), {}, {}, nullptr};
    const Tensor* a = which_ == Scalar::kFirst ? nullptr : inputs[0];
    const Tensor* b = which_ == Scalar::kSecond  ? nullptr
                      : which_ == Scalar::kFirst ? inputs[0]
                                                 : inputs[1];
    bool plain = output.is_contiguous();
    for (const Tensor* input : inputs) {
      plain =
          plain && input->is_contiguous() && input->shape() == output.shape();
    }
    args.a = a == nullptr ? kernels::Input{nullptr, scalar_}
                          : kernels::Input{a->data(), 0};
    args.b = b == nullptr ? kernels::Input{nullptr, scalar_}
                          : kernels::Input{b->data(), 0};
    if (plain) return KernelsOf(stream).Binary(stream, label, args);

    const Shape none = Shape::Filled(output.dim(), 0);
    const kernels::StridedLayout layout = {
        output.shape(), output.strides(),
        a == nullptr ? none : BroadcastStrides(*a, output.shape()),
        b == nullptr ? none : BroadcastStrides(*b, output.shape())};
    args.layout = &layout;
    return KernelsOf(stream).Binary(stream, label, args);
  }

  std::vector<Attribute> attributes() const override {
    switch (which_) {
      case Scalar::kNone:
        return {};
      case Scalar::kFirst:
        return {{"first", absl::StrFormat("%.17g", scalar_)}};
      case Scalar::kSecond:
        return {{"second", absl::StrFormat("%.17g", scalar_)}};
    }
    return {};
  }
  std::unique_ptr<Primitive> Clone() const override {
    return std::make_unique<BinaryPrimitive>(*this);
  }

 private:
  const BinaryOp op_;
  const Scalar which_;
  const double scalar_;
};

class NegativePrimitive final : public Primitive {
 public:
  const char* name() const override { return "neg"; }
  ValueSpec Infer(Inputs inputs) const override {
    return {inputs[0]->shape(), inputs[0]->dtype(), inputs[0]->device()};
  }
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       const Tensor& output) const override {
    const Tensor& a = *inputs[0];
    kernels::UnaryArgs args{kernels::UnaryOp::kNegative,
                            output.dtype(),
                            output.numel(),
                            output.data(),
                            a.data(),
                            nullptr};
    if (a.is_contiguous()) return KernelsOf(stream).Unary(stream, label, args);
    const kernels::StridedLayout layout = {output.shape(), output.strides(),
                                           a.strides(),
                                           Shape::Filled(a.dim(), 0)};
    args.layout = &layout;
    return KernelsOf(stream).Unary(stream, label, args);
  }
  std::unique_ptr<Primitive> Clone() const override {
    return std::make_unique<NegativePrimitive>(*this);
  }
};

// How a matrix lies in memory, in the words of BLAS: row by row, `ld` elements
// apart, or so that its transpose does.
struct MatrixLayout {
  bool transpose;
  std::int64_t ld;
};

MatrixLayout LayoutOf(const Tensor& matrix) {
  const auto rows_apart = [&matrix](int row, int column) {
    return (matrix.size(column) <= 1 || matrix.strides()[column] == 1) &&
           (matrix.size(row) <= 1 ||
            matrix.strides()[row] >= matrix.size(column));
  };
  const auto distance = [&matrix](int row, int column) {
    return matrix.size(row) <= 1 ? matrix.size(column) : matrix.strides()[row];
  };
  if (rows_apart(0, 1)) return {false, distance(0, 1)};
  if (rows_apart(1, 0)) return {true, distance(1, 0)};
  throw std::invalid_argument(absl::StrFormat(
      "[matmul] an operand has neither rows nor columns that are contiguous: "
      "shape %s, strides %s",
      matrix.shape().ToString(), matrix.strides().ToString()));
}

class MatMulPrimitive final : public Primitive {
 public:
  const char* name() const override { return "matmul"; }

  ValueSpec Infer(Inputs inputs) const override {
    const Tensor& a = *inputs[0];
    const Tensor& b = *inputs[1];
    if (a.dim() != 2 || b.dim() != 2) {
      throw std::invalid_argument(
          absl::StrFormat("[matmul] two matrices wanted; got %s @ %s",
                          a.shape().ToString(), b.shape().ToString()));
    }
    if (a.size(1) != b.size(0)) {
      throw std::invalid_argument(
          absl::StrFormat("[matmul] inner sizes differ: %s @ %s",
                          a.shape().ToString(), b.shape().ToString()));
    }
    if (a.dtype() != b.dtype() || !IsFloatingPoint(a.dtype())) {
      throw std::invalid_argument(absl::StrFormat(
          "[matmul] two float32 or two float64 matrices wanted; got %s and %s",
          DTypeName(a.dtype()), DTypeName(b.dtype())));
    }
    LayoutOf(a);
    LayoutOf(b);
    const Shape shape = {a.size(0), b.size(1)};
    CheckedNumel(name(), shape, DTypeSize(a.dtype()));
    return {shape, a.dtype(), a.device()};
  }

  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       const Tensor& output) const override {
    const Tensor& a = *inputs[0];
    const Tensor& b = *inputs[1];
    const MatrixLayout in_a = LayoutOf(a);
    const MatrixLayout in_b = LayoutOf(b);
    return KernelsOf(stream).MatMul(
        stream, label,
        {output.dtype(), in_a.transpose, in_b.transpose, a.size(0), b.size(1),
         a.size(1), a.data(), in_a.ld, b.data(), in_b.ld, output.data(),
         output.size(1)});
  }
  std::unique_ptr<Primitive> Clone() const override {
    return std::make_unique<MatMulPrimitive>(*this);
  }
};

// The line of the operation is that of its first operand: of `x * y + 2`
// written over two lines, that is where it begins.
Tensor ApplyBinary(BinaryOp op, const Operand& a, const Operand& b) {
  using Scalar = BinaryPrimitive::Scalar;
  if (b.tensor() == nullptr && a.tensor() != nullptr) {
    return Apply(BinaryPrimitive(op, Scalar::kSecond, b.scalar()), {a.tensor()},
                 a.at());
  }
  if (a.tensor() == nullptr && b.tensor() != nullptr) {
    return Apply(BinaryPrimitive(op, Scalar::kFirst, a.scalar()), {b.tensor()},
                 a.at());
  }
  if (a.tensor() == nullptr) {
    throw std::invalid_argument(
        absl::StrFormat("[%s] one operand must be a tensor; requested at %s",
                        NameOf(op), a.at().ToString()));
  }
  return Apply(BinaryPrimitive(op, Scalar::kNone, 0), {a.tensor(), b.tensor()},
               a.at());
}

Tensor& ApplyBinaryInPlace(BinaryOp op, Tensor& x, const Operand& y) {
  using Scalar = BinaryPrimitive::Scalar;
  if (y.tensor() == nullptr) {
    ApplyInPlace(BinaryPrimitive(op, Scalar::kSecond, y.scalar()), {&x}, x,
                 y.at());
  } else {
    ApplyInPlace(BinaryPrimitive(op, Scalar::kNone, 0), {&x, y.tensor()}, x,
                 y.at());
  }
  return x;
}

}  // namespace

Tensor operator+(const Operand& a, const Operand& b) {
  return ApplyBinary(BinaryOp::kAdd, a, b);
}
Tensor operator-(const Operand& a, const Operand& b) {
  return ApplyBinary(BinaryOp::kSubtract, a, b);
}
Tensor operator*(const Operand& a, const Operand& b) {
  return ApplyBinary(BinaryOp::kMultiply, a, b);
}

Tensor operator-(const Operand& a) {
  if (a.tensor() == nullptr) {
    throw std::invalid_argument(
        absl::StrFormat("[neg] the operand must be a tensor; requested at %s",
                        a.at().ToString()));
  }
  return Apply(NegativePrimitive(), {a.tensor()}, a.at());
}

Tensor& operator+=(Tensor& x, const Operand& y) {
  return ApplyBinaryInPlace(BinaryOp::kAdd, x, y);
}
Tensor& operator-=(Tensor& x, const Operand& y) {
  return ApplyBinaryInPlace(BinaryOp::kSubtract, x, y);
}
Tensor& operator*=(Tensor& x, const Operand& y) {
  return ApplyBinaryInPlace(BinaryOp::kMultiply, x, y);
}

Tensor MatMul(const Tensor& a, const Tensor& b, SourceLocation at) {
  return Apply(MatMulPrimitive(), {&a, &b}, at);
}

}  // namespace d2l
