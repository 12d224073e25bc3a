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
  if (!OpTakes(op_, x.dtype())) CheckFloatingPoint(name(), x);
  if (op_ == ReduceOp::kArgMax && dims_.end() - dims_.begin() > 1) {
    Reject("[argmax] one dimension wanted, or none for all elements");
  }
  const unsigned reduced = ReducedDims(x);
  Shape shape;
  bool any_elements = true;
  for (int i = 0; i < x.dim(); ++i) {
    const bool gone = (reduced >> i & 1) != 0;
    if (gone && x.size(i) == 0) any_elements = false;
    if (!gone || keepdim_) shape.push_back(gone ? 1 : x.size(i));
  }
  const bool needs_elements = op_ != ReduceOp::kSum && op_ != ReduceOp::kMean;
  if (needs_elements && !any_elements) {
    Reject(
        "[%s] no elements to choose from: a dimension that is reduced has size "
        "0 in %s",
        name(), x.shape());
  }
  return {shape, ResultDType(op_, x.dtype()), x.device()};
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
  return Enqueue(ctx, kernels::ReduceArgs{op_, x.dtype(), ctx.output.data(),
                                          x.data(), &layout});
}

void ReducePrimitive::Visit(Fields& field) {
  std::vector<int> dims(dims_.begin(), dims_.end());
  field("dim", dims)("keepdim", keepdim_);
  Dims read;
  for (const int dim : dims) read.Add(dim);
  dims_ = read;
}

unsigned ReducePrimitive::ReducedDims(const Tensor& x) const {
  if (dims_.empty()) return ~0u;
  unsigned reduced = 0;
  for (const int given : dims_) {
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
  WrapDim(name(), dim_, x.dim());
  return {x.shape(), x.dtype(), x.device()};
}

std::uint64_t SoftmaxPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[0];
  const int dim = WrapDim(name(), dim_, x.dim());
  const Split3 split = SplitAround(x.shape(), dim);
  return Enqueue(
      ctx, kernels::SoftmaxArgs{log_, x.dtype(), ctx.output.data(), x.data(),
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
