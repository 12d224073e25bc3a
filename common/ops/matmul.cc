#include "common/ops/matmul.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/kernels/layout.h"
#include "common/ops/copy.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/reject.h"

namespace d2l {
namespace {

// One operand as a batch of matrices: a vector is one row or one column. The
// layout is given in BLAS's terms: the matrix, or else its transpose, is stored
// row by row, `ld` elements apart; otherwise ld is -1.
struct Matrices {
  std::int64_t rows, columns;
  bool transpose;
  std::int64_t ld;
};

enum class Side { kLeft, kRight };

Matrices ToMatrices(const Tensor& x, Side side) {
  const int n = x.dim();
  const std::int64_t last = x.size(n - 1), step = x.strides()[n - 1];
  std::int64_t rows = 1, columns = 1, row_step = 1, column_step = 1;
  if (n >= 2 || side == Side::kLeft) {
    columns = last;
    column_step = step;
    rows = n >= 2 ? x.size(n - 2) : 1;
    row_step = n >= 2 ? x.strides()[n - 2] : columns;
  } else {
    rows = last;
    row_step = step;
  }
  if ((columns <= 1 || column_step == 1) &&
      (rows <= 1 || row_step >= columns)) {
    return {rows, columns, false, rows <= 1 ? columns : row_step};
  }
  if ((rows <= 1 || row_step == 1) && (columns <= 1 || column_step >= rows)) {
    return {rows, columns, true, columns <= 1 ? rows : column_step};
  }
  return {rows, columns, false, -1};
}

// The batch dimensions. sizes: a shape, or strides.
Shape BatchOf(const Shape& sizes) {
  return Shape(
      absl::MakeConstSpan(sizes.data(), std::max(sizes.rank() - 2, 0)));
}

// Strides of the batch dimensions of x, as seen from the broadcast `batch`.
Shape BatchStrides(const Tensor& x, const Shape& batch) {
  return BroadcastStrides(BatchOf(x.shape()), BatchOf(x.strides()), batch);
}

// How the kernel steps through the batches of a, b and the output: of the
// collapsed dimensions it takes the last itself.
kernels::StridedLayout BatchLayout(const Tensor& a, const Tensor& b,
                                   std::int64_t output_stride) {
  const Shape shape =
      BroadcastShapes("matmul", BatchOf(a.shape()), BatchOf(b.shape()));
  kernels::StridedLayout layout = {
      shape,
      ContiguousStrides(shape),
      {BatchStrides(a, shape), BatchStrides(b, shape)}};
  for (int i = 0; i < shape.rank(); ++i) layout.out[i] *= output_stride;
  kernels::Collapse(layout, 2);
  return layout;
}

// args: of the first product.
std::uint64_t LaunchBatches(const LaunchContext& ctx,
                            kernels::MatMulArgs args) {
  const Tensor &a = *ctx.inputs[0], &b = *ctx.inputs[1];
  const kernels::StridedLayout layout = BatchLayout(a, b, args.m * args.n);
  const int last = layout.shape.rank() - 1;
  args.batch = layout.shape[last];
  args.a_stride = layout.in[0][last];
  args.b_stride = layout.in[1][last];
  args.c_stride = layout.out[last];
  // Further dimensions are rare: each step of them is a launch.
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
    const std::uint64_t number = Enqueue(ctx, args);
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

}  // namespace

ValueSpec MatMulPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 2);
  const Tensor& a = *inputs[0];
  const Tensor& b = *inputs[1];
  if (a.dim() == 0 || b.dim() == 0) {
    Reject(
        "[matmul] vectors, matrices or batches of them wanted; got %s @ %s; to "
        "scale by a number write a * b",
        a.shape(), b.shape());
  }
  if (a.dtype() != b.dtype() || !IsFloatingPoint(a.dtype())) {
    Reject("[matmul] two float32 or two float64 operands wanted; got %s and %s",
           a.dtype(), b.dtype());
  }
  const Matrices in_a = ToMatrices(a, Side::kLeft);
  const Matrices in_b = ToMatrices(b, Side::kRight);
  if (in_a.columns != in_b.rows) {
    Reject("[matmul] inner sizes differ: %s @ %s", a.shape(), b.shape());
  }
  // The strides of an empty tensor, which is contiguous, do not matter.
  if ((in_a.ld < 0 && !a.is_contiguous()) ||
      (in_b.ld < 0 && !b.is_contiguous())) {
    Reject(
        "[matmul] an operand has neither its rows nor its columns side by side "
        "in memory; copy it first: Contiguous(x)");
  }
  Shape shape;
  if (a.dim() > 2 || b.dim() > 2) {
    shape = BroadcastShapes("matmul", BatchOf(a.shape()), BatchOf(b.shape()));
  }
  if (a.dim() > 1) shape.push_back(in_a.rows);
  if (b.dim() > 1) shape.push_back(in_b.columns);
  CheckedNumel(name(), shape, DTypeSize(a.dtype()));
  return {shape, a.dtype(), a.device()};
}

std::uint64_t MatMulPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& a = *ctx.inputs[0];
  const Tensor& b = *ctx.inputs[1];
  const Matrices in_a = ToMatrices(a, Side::kLeft);
  const Matrices in_b = ToMatrices(b, Side::kRight);
  kernels::MatMulArgs args{
      ctx.output.dtype(), in_a.transpose, in_b.transpose,    in_a.rows,
      in_b.columns,       in_a.columns,   a.data(),          in_a.ld,
      b.data(),           in_b.ld,        ctx.output.data(), in_b.columns};
  if (ctx.output.numel() == 0) args.m = args.n = 0;
  if ((a.dim() <= 2 && b.dim() <= 2) || ctx.output.numel() == 0) {
    return Enqueue(ctx, args);
  }
  return LaunchBatches(ctx, args);
}

Tensor MatMul(const Tensor& a, const Tensor& b, SourceLocation at) {
  // The primitive reports anything else that is wrong with an operand.
  const auto must_copy = [](const Tensor& x, Side side) {
    return x.defined() && x.dim() > 0 && !x.is_contiguous() &&
           ToMatrices(x, side).ld < 0;
  };
  if (must_copy(a, Side::kLeft)) return MatMul(Clone(a, at), b, at);
  if (must_copy(b, Side::kRight)) return MatMul(a, Clone(b, at), at);
  return Apply(MatMulPrimitive(), {&a, &b}, at);
}

Tensor Dot(const Tensor& a, const Tensor& b, SourceLocation at) {
  if (a.defined() && b.defined() && (a.dim() != 1 || b.dim() != 1)) {
    RejectAt(at,
             "[dot] two vectors wanted; got %s and %s; for matrices use MatMul",
             a.shape(), b.shape());
  }
  return MatMul(a, b, at);
}

}  // namespace d2l
