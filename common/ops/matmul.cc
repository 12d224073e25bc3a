#include "common/ops/matmul.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/kernels/kernels.h"
#include "common/kernels/layout.h"
#include "common/ops/copy.h"
#include "common/ops/launch.h"
#include "common/ops/matmul_primitives.h"
#include "common/ops/primitive.h"

namespace d2l {
namespace {

// One operand as a batch of matrices: a vector is one row or one column.
struct Matrices {
  std::int64_t rows, columns;
  std::int64_t row_stride, column_stride;
};

enum class Side { kLeft, kRight };

Matrices ToMatrices(const Tensor& x, Side side) {
  const int n = x.dim();
  if (n >= 2) {
    return {x.size(n - 2), x.size(n - 1), x.strides()[n - 2],
            x.strides()[n - 1]};
  }
  return side == Side::kLeft ? Matrices{1, x.size(0), x.size(0), x.strides()[0]}
                             : Matrices{x.size(0), 1, x.strides()[0], 1};
}

// How a matrix lies in memory, in the words of BLAS: row by row, `ld` elements
// apart, or so that its transpose does.
struct MatrixLayout {
  bool transpose;
  std::int64_t ld;
};

// False if it lies neither way.
bool FindLayout(const Matrices& x, MatrixLayout& layout) {
  if ((x.columns <= 1 || x.column_stride == 1) &&
      (x.rows <= 1 || x.row_stride >= x.columns)) {
    layout = {false, x.rows <= 1 ? x.columns : x.row_stride};
    return true;
  }
  if ((x.rows <= 1 || x.row_stride == 1) &&
      (x.columns <= 1 || x.column_stride >= x.rows)) {
    layout = {true, x.columns <= 1 ? x.rows : x.column_stride};
    return true;
  }
  return false;
}

Shape BatchShape(const Tensor& x) {
  return x.dim() <= 2
             ? Shape()
             : Shape(absl::MakeConstSpan(x.shape().data(), x.dim() - 2));
}

// Strides of the batch dimensions of x, as seen from the broadcast `batch`.
Shape BatchStrides(const Tensor& x, const Shape& batch) {
  Shape strides = Shape::Filled(batch.rank(), 0);
  const int own = x.dim() <= 2 ? 0 : x.dim() - 2;
  const int missing = batch.rank() - own;
  for (int i = 0; i < own; ++i) {
    if (x.size(i) != 1) strides[missing + i] = x.strides()[i];
  }
  return strides;
}

// How the kernel steps through the batches of a, b and the output: of the
// collapsed dimensions it takes the last itself.
kernels::StridedLayout BatchLayout(const Tensor& a, const Tensor& b,
                                   std::int64_t output_stride) {
  const Shape shape = BroadcastShapes("matmul", BatchShape(a), BatchShape(b));
  kernels::StridedLayout layout = {
      shape,
      ContiguousStrides(shape),
      {BatchStrides(a, shape), BatchStrides(b, shape)}};
  for (int i = 0; i < shape.rank(); ++i) layout.out[i] *= output_stride;
  kernels::Collapse(layout, 2);
  return layout;
}

}  // namespace

ValueSpec MatMulPrimitive::Infer(Inputs inputs, int) const {
  CheckInputCount(name(), inputs, 2);
  const Tensor& a = *inputs[0];
  const Tensor& b = *inputs[1];
  if (a.dim() == 0 || b.dim() == 0) {
    throw std::invalid_argument(absl::StrFormat(
        "[matmul] vectors, matrices or batches of them wanted; got %s @ %s; "
        "to scale by a number write a * b",
        a.shape().ToString(), b.shape().ToString()));
  }
  if (a.dtype() != b.dtype() || !IsFloatingPoint(a.dtype())) {
    throw std::invalid_argument(absl::StrFormat(
        "[matmul] two float32 or two float64 operands wanted; got %s and %s",
        DTypeName(a.dtype()), DTypeName(b.dtype())));
  }
  const Matrices in_a = ToMatrices(a, Side::kLeft);
  const Matrices in_b = ToMatrices(b, Side::kRight);
  if (in_a.columns != in_b.rows) {
    throw std::invalid_argument(
        absl::StrFormat("[matmul] inner sizes differ: %s @ %s",
                        a.shape().ToString(), b.shape().ToString()));
  }
  MatrixLayout layout;
  if ((!a.is_contiguous() && !FindLayout(in_a, layout)) ||
      (!b.is_contiguous() && !FindLayout(in_b, layout))) {
    throw std::invalid_argument(
        "[matmul] an operand has neither its rows nor its columns side by side "
        "in memory; copy it first: Contiguous(x)");
  }
  Shape shape;
  if (a.dim() == 2 && b.dim() == 2) {
    shape = {in_a.rows, in_b.columns};
  } else {
    absl::InlinedVector<std::int64_t, kMaxRank + 2> sizes;
    const Shape batch = BroadcastShapes("matmul", BatchShape(a), BatchShape(b));
    sizes.assign(batch.begin(), batch.end());
    if (a.dim() > 1) sizes.push_back(in_a.rows);
    if (b.dim() > 1) sizes.push_back(in_b.columns);
    shape = Shape(sizes);
  }
  CheckedNumel(name(), shape, DTypeSize(a.dtype()));
  return {shape, a.dtype(), a.device()};
}

std::uint64_t MatMulPrimitive::Launch(Stream& stream, const OpLabel& label,
                                      Inputs inputs, Outputs outputs) const {
  const Tensor& output = outputs[0];
  const Tensor& a = *inputs[0];
  const Tensor& b = *inputs[1];
  const Matrices in_a = ToMatrices(a, Side::kLeft);
  const Matrices in_b = ToMatrices(b, Side::kRight);
  MatrixLayout a_layout{}, b_layout{};
  FindLayout(in_a, a_layout);
  FindLayout(in_b, b_layout);
  kernels::MatMulArgs args{
      output.dtype(), a_layout.transpose, b_layout.transpose, in_a.rows,
      in_b.columns,   in_a.columns,       a.data(),           a_layout.ld,
      b.data(),       b_layout.ld,        output.data(),      in_b.columns};
  if (output.numel() == 0) args.m = args.n = 0;
  if ((a.dim() <= 2 && b.dim() <= 2) || output.numel() == 0) {
    return KernelsOf(stream).MatMul(stream, label, args);
  }
  return LaunchBatches(stream, label, a, b, args);
}

std::uint64_t MatMulPrimitive::LaunchBatches(Stream& stream,
                                             const OpLabel& label,
                                             const Tensor& a, const Tensor& b,
                                             kernels::MatMulArgs args) {
  const kernels::StridedLayout layout = BatchLayout(a, b, args.m * args.n);
  const int last = layout.shape.rank() - 1;
  args.batch = layout.shape[last];
  args.a_stride = layout.in[0][last];
  args.b_stride = layout.in[1][last];
  args.c_stride = layout.out[last];
  // Seldom are there further dimensions: each step of them is a launch.
  const std::size_t size = DTypeSize(args.dtype);
  const auto advance = [&args, &layout, size](int d, std::int64_t steps) {
    args.a = static_cast<const char*>(args.a) +
             static_cast<std::int64_t>(size) * layout.in[0][d] * steps;
    args.b = static_cast<const char*>(args.b) +
             static_cast<std::int64_t>(size) * layout.in[1][d] * steps;
    args.c = static_cast<char*>(args.c) +
             static_cast<std::int64_t>(size) * layout.out[d] * steps;
  };
  std::int64_t index[kMaxRank] = {};
  for (;;) {
    const std::uint64_t number = KernelsOf(stream).MatMul(stream, label, args);
    int d = last - 1;
    for (; d >= 0; --d) {
      advance(d, 1);
      if (++index[d] < layout.shape[d]) break;
      advance(d, -index[d]);
      index[d] = 0;
    }
    if (d < 0) return number;
  }
}

namespace {

bool HasLayout(const Tensor& x, Side side) {
  MatrixLayout layout;
  // What is wrong with others, the primitive says.
  return !x.defined() || x.dim() == 0 || x.is_contiguous() ||
         FindLayout(ToMatrices(x, side), layout);
}

}  // namespace

Tensor MatMul(const Tensor& a, const Tensor& b, SourceLocation at) {
  if (HasLayout(a, Side::kLeft)) {
    if (HasLayout(b, Side::kRight))
      return Apply(MatMulPrimitive(), {&a, &b}, at);
    const Tensor b_copy = Clone(b, at);
    return Apply(MatMulPrimitive(), {&a, &b_copy}, at);
  }
  const Tensor a_copy = Clone(a, at);
  return MatMul(a_copy, b, at);
}

Tensor Dot(const Tensor& a, const Tensor& b, SourceLocation at) {
  if (a.defined() && b.defined() && (a.dim() != 1 || b.dim() != 1)) {
    throw std::invalid_argument(absl::StrFormat(
        "[dot] two vectors wanted; got %s and %s; for matrices use MatMul; "
        "requested at %s",
        a.shape().ToString(), b.shape().ToString(), at.ToString()));
  }
  return MatMul(a, b, at);
}

}  // namespace d2l
