#include "common/ops/reduction.h"

#include <cstdint>
#include <vector>

#include "common/ops/copy.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/reject.h"
#include "common/ops/views.h"

namespace d2l {

using kernels::ReduceOp;

ValueSpec ReducePrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 1);
  const Tensor& x = *inputs[0];
  if (!OpTakes(op, x.dtype())) CheckFloatingPoint(name(), x);
  if (op == ReduceOp::kArgMax && dims.end() - dims.begin() > 1) {
    Reject("[argmax] one dimension wanted, or none for all elements");
  }
  const unsigned reduced = ReducedDims(x);
  Shape shape;
  bool any_elements = true;
  for (int i = 0; i < x.dim(); ++i) {
    const bool gone = (reduced >> i & 1) != 0;
    if (gone && x.size(i) == 0) any_elements = false;
    if (!gone || keepdim) shape.push_back(gone ? 1 : x.size(i));
  }
  const bool needs_elements = op != ReduceOp::kSum && op != ReduceOp::kMean;
  if (needs_elements && !any_elements) {
    Reject(
        "[%s] no elements to choose from: a dimension that is reduced has size "
        "0 in %s",
        name(), x.shape());
  }
  return {shape, ResultDType(op, x.dtype()), x.device()};
}

std::uint64_t ReducePrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[0];
  const unsigned reduced = ReducedDims(x);
  kernels::ReduceLayout layout;
  for (int i = 0; i < x.dim(); ++i) {
    const bool gone = (reduced >> i & 1) != 0;
    (gone ? layout.reduced : layout.kept).push_back(x.size(i));
    (gone ? layout.reduced_strides : layout.kept_strides)
        .push_back(x.strides()[i]);
  }
  kernels::Collapse(layout);
  return Enqueue(ctx, kernels::ReduceArgs{op, x.dtype(), ctx.output.data(),
                                          x.data(), &layout});
}

void ReducePrimitive::Visit(Fields& field) {
  std::vector<int> dims(this->dims.begin(), this->dims.end());
  field("dim", dims)("keepdim", keepdim);
  Dims read;
  for (const int dim : dims) read.Add(dim);
  this->dims = read;
}

unsigned ReducePrimitive::ReducedDims(const Tensor& x) const {
  if (dims.empty()) return ~0u;
  unsigned reduced = 0;
  for (const int given : dims) {
    const unsigned bit = 1u << WrapDim(name(), given, x.dim());
    if ((reduced & bit) != 0) {
      Reject("[%s] dimension %d is named twice", name(), given);
    }
    reduced |= bit;
  }
  return reduced;
}

ValueSpec SoftmaxPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 1);
  const Tensor& x = *inputs[0];
  CheckContiguous(name(), x);
  CheckFloatingPoint(name(), x);
  WrapDim(name(), dim, x.dim());
  return {x.shape(), x.dtype(), x.device()};
}

std::uint64_t SoftmaxPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[0];
  const int dim = WrapDim(name(), this->dim, x.dim());
  const Split3 split = SplitAround(x.shape(), dim);
  return Enqueue(
      ctx, kernels::SoftmaxArgs{log, x.dtype(), ctx.output.data(), x.data(),
                                split.outer, split.size, split.inner});
}

namespace {

Tensor Reduce(ReduceOp op, const Tensor& x, const Dims& dims, bool keepdim,
              SourceLocation at) {
  return Apply(ReducePrimitive(op, dims, keepdim), {&x}, at);
}

}  // namespace

Tensor Sum(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation at) {
  return Reduce(ReduceOp::kSum, x, dims, keepdim, at);
}
Tensor Mean(const Tensor& x, const Dims& dims, bool keepdim,
            SourceLocation at) {
  return Reduce(ReduceOp::kMean, x, dims, keepdim, at);
}
Tensor Max(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation at) {
  return Reduce(ReduceOp::kMax, x, dims, keepdim, at);
}
Tensor Min(const Tensor& x, const Dims& dims, bool keepdim, SourceLocation at) {
  return Reduce(ReduceOp::kMin, x, dims, keepdim, at);
}
Tensor ArgMax(const Tensor& x, const Dims& dims, bool keepdim,
              SourceLocation at) {
  return Reduce(ReduceOp::kArgMax, x, dims, keepdim, at);
}
Tensor Softmax(const Tensor& x, int dim, SourceLocation at) {
  return ApplyContiguous(SoftmaxPrimitive(/*log=*/false, dim), {&x}, at);
}
Tensor LogSoftmax(const Tensor& x, int dim, SourceLocation at) {
  return ApplyContiguous(SoftmaxPrimitive(/*log=*/true, dim), {&x}, at);
}

}  // namespace d2l
