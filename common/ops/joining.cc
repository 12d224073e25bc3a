#include "common/ops/joining.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/ops/copy.h"
#include "common/ops/creation.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/reject.h"
#include "common/ops/views.h"

namespace d2l {

ValueSpec CatPrimitive::Infer(Inputs inputs) const {
  if (inputs.empty()) Reject("[cat] at least one tensor wanted; got none");
  for (const Tensor* x : inputs) CheckContiguous(name(), *x);
  const Tensor& first = *inputs[0];
  if (first.dim() == 0) {
    Reject("[cat] scalars cannot be joined along a dimension; use Stack");
  }
  const int dim = WrapDim(name(), this->dim, first.dim());
  Shape shape = first.shape();
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Tensor& x = *inputs[i];
    if (x.dtype() != first.dtype()) {
      Reject(
          "[cat] tensor %d is %s, the first %s; convert one of them: To(x, "
          "DType)",
          i, x.dtype(), first.dtype());
    }
    bool fits = x.dim() == first.dim();
    for (int d = 0; d < first.dim() && fits; ++d) {
      fits = d == dim || x.size(d) == first.size(d);
    }
    if (!fits) {
      Reject(
          "[cat] sizes differ outside dimension %d: tensor %d is %s, the first "
          "%s",
          dim, i, x.shape(), first.shape());
    }
    if (__builtin_add_overflow(shape[dim], x.size(dim), &shape[dim])) {
      Reject("[cat] the sizes add up to more than 64 bits can count");
    }
  }
  CheckedNumel(name(), shape, DTypeSize(first.dtype()));
  return {shape, first.dtype(), first.device()};
}

std::uint64_t CatPrimitive::Launch(const LaunchContext& ctx) const {
  const int dim = WrapDim(name(), this->dim, ctx.output.dim());
  const std::int64_t element_size = DTypeSize(ctx.output.dtype());
  absl::InlinedVector<kernels::CatPiece, 8> pieces;
  pieces.reserve(ctx.inputs.size());
  std::int64_t outer = 1;
  for (const Tensor* input : ctx.inputs) {
    const Split3 split = SplitAround(input->shape(), dim);
    outer = split.outer;
    pieces.push_back({input->data(), split.size * split.inner * element_size});
  }
  return Enqueue(
      ctx, kernels::CatArgs{outer, ctx.output.data(), element_size, pieces});
}

namespace {

// The spec of the elements that are taken from x.
ValueSpec InferTaken(const char* name, kernels::IndexOp op, int given_dim,
                     const Tensor& x, const Tensor& index) {
  CheckContiguous(name, x);
  CheckContiguous(name, index);
  if (index.dtype() != DType::kInt64) {
    Reject("[%s] an int64 index wanted; got %s", name, index);
  }
  if (x.dim() == 0) Reject("[%s] a scalar has no dimension to index", name);
  const int dim = WrapDim(name, given_dim, x.dim());
  Shape shape = x.shape();
  if (op == kernels::IndexOp::kGather) {
    bool fits = index.dim() == x.dim();
    for (int i = 0; i < x.dim() && fits; ++i) {
      fits = i == dim || index.size(i) == x.size(i);
    }
    if (!fits) {
      Reject(
          "[%s] the index must have as many dimensions as the tensor, none "
          "longer but dimension %d: index %s, tensor %s",
          name, dim, index.shape(), x.shape());
    }
    shape = index.shape();
  } else {
    if (index.dim() != 1) {
      Reject("[%s] the index must be a vector; got %s", name, index.shape());
    }
    shape[dim] = index.size(0);
  }
  CheckedNumel(name, shape, DTypeSize(x.dtype()));
  return {shape, x.dtype(), x.device()};
}

}  // namespace

ValueSpec IndexPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 2);
  return InferTaken(name(), op, dim, *inputs[0], *inputs[1]);
}

std::uint64_t IndexPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[0];
  const int dim = WrapDim(name(), this->dim, x.dim());
  const Split3 in = SplitAround(x.shape(), dim);
  return Enqueue(ctx,
                 kernels::IndexArgs{
                     op, static_cast<std::int64_t>(DTypeSize(x.dtype())),
                     ctx.output.data(), x.data(),
                     static_cast<const std::int64_t*>(ctx.inputs[1]->data()),
                     in.outer, in.size, ctx.output.size(dim), in.inner});
}

ValueSpec IndexAddPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 3);
  const Tensor& x = *inputs[0];
  const Tensor& source = *inputs[2];
  CheckFloatingPoint(name(), x);
  CheckContiguous(name(), source);
  const ValueSpec taken = InferTaken(name(), op, dim, x, *inputs[1]);
  if (source.shape() != taken.shape || source.dtype() != x.dtype()) {
    Reject(
        "[%s] a source of shape %s and of the tensor's dtype wanted; got %s to "
        "add to %s",
        name(), taken.shape, source, x);
  }
  return {x.shape(), x.dtype(), x.device()};
}

std::uint64_t IndexAddPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& source = *ctx.inputs[2];
  CopyUnlessSame(ctx);
  const int dim = WrapDim(name(), this->dim, ctx.output.dim());
  const Split3 split = SplitAround(ctx.output.shape(), dim);
  return Enqueue(ctx,
                 kernels::IndexAddArgs{
                     op, ctx.output.dtype(), ctx.output.data(),
                     static_cast<const std::int64_t*>(ctx.inputs[1]->data()),
                     source.data(), split.outer, split.size, source.size(dim),
                     split.inner});
}

namespace {

// Joins what `view` makes of each tensor.
template <typename F>
Tensor CatViews(absl::Span<const Tensor> tensors, int dim, SourceLocation at,
                F view) {
  std::vector<Tensor> views;
  views.reserve(tensors.size());
  for (const Tensor& x : tensors) views.push_back(x.defined() ? view(x) : x);
  return Cat(views, dim, at);
}

}  // namespace

Tensor Cat(absl::Span<const Tensor> tensors, int dim, SourceLocation at) {
  // As in PyTorch, an empty vector may stand among tensors of any shape.
  const bool of_one_rank =
      std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& x) {
        return !x.defined() || x.dim() == tensors[0].dim();
      });
  absl::InlinedVector<const Tensor*, 8> inputs;
  inputs.reserve(tensors.size());
  for (const Tensor& x : tensors) {
    if (!of_one_rank && x.defined() && x.shape() == Shape{0}) continue;
    inputs.push_back(&x);
  }
  return ApplyContiguous(CatPrimitive(dim), inputs, at);
}

Tensor Stack(absl::Span<const Tensor> tensors, int dim, SourceLocation at) {
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].defined() && tensors[0].defined() &&
        tensors[i].shape() != tensors[0].shape()) {
      RejectAt(
          at,
          "[stack] tensors of one shape wanted: tensor %d is %s, the first %s",
          i, tensors[i].shape(), tensors[0].shape());
    }
  }
  // Counted in the result, which has one dimension more.
  const int rank = tensors.empty() || !tensors[0].defined()
                       ? kMaxRank
                       : tensors[0].dim() + 1;
  const int wrapped = dim < 0 ? dim + rank : dim;
  return CatViews(tensors, wrapped, at,
                  [dim, at](const Tensor& x) { return Unsqueeze(x, dim, at); });
}

Tensor VStack(absl::Span<const Tensor> tensors, SourceLocation at) {
  return CatViews(tensors, 0, at, [at](const Tensor& x) {
    return x.dim() >= 2 ? x : View(x, {1, x.numel()}, at);
  });
}

Tensor HStack(absl::Span<const Tensor> tensors, SourceLocation at) {
  const int dim =
      tensors.empty() || !tensors[0].defined() || tensors[0].dim() <= 1 ? 0 : 1;
  return CatViews(tensors, dim, at, [at](const Tensor& x) {
    return x.dim() >= 1 ? x : View(x, {1}, at);
  });
}

Tensor DStack(absl::Span<const Tensor> tensors, SourceLocation at) {
  return CatViews(tensors, 2, at, [at](const Tensor& x) {
    if (x.dim() >= 3) return x;
    if (x.dim() == 2) return Unsqueeze(x, 2, at);
    return View(x, {1, x.numel(), 1}, at);
  });
}

Tensor IndexSelect(const Tensor& x, int dim, const Tensor& index,
                   SourceLocation at) {
  const IndexPrimitive primitive(kernels::IndexOp::kSelect, dim);
  if (!x.defined() || !index.defined()) {
    return Apply(primitive, {&x, &index}, at);  // throws
  }
  // A scalar counts as a vector of one element.
  const Tensor from = x.dim() == 0 ? View(x, {1}, at) : x;
  const Tensor positions = index.dim() == 0 ? View(index, {1}, at) : index;
  const Tensor result = ApplyContiguous(primitive, {&from, &positions}, at);
  return x.dim() == 0 && result.numel() == 1 ? View(result, {}, at) : result;
}

Tensor Gather(const Tensor& x, int dim, const Tensor& index,
              SourceLocation at) {
  const IndexPrimitive primitive(kernels::IndexOp::kGather, dim);
  if (x.defined() && index.defined() && index.numel() == 0 &&
      index.dtype() == DType::kInt64) {
    WithLine(at, [&] { return WrapDim("gather", dim, x.dim()); });
    return Empty(index.shape(), x.device(), x.dtype(), at);
  }
  if (x.defined() && index.defined() && x.dim() + index.dim() <= 1) {
    // A scalar counts as a vector of one element.
    const Tensor from = View(x, {x.numel()}, at);
    const Tensor positions = View(index, {index.numel()}, at);
    return View(Apply(primitive, {&from, &positions}, at), index.shape(), at);
  }
  if (!x.defined() || !index.defined() || x.dim() != index.dim()) {
    return Apply(primitive, {&x, &index}, at);  // throws
  }
  // Where the index is shorter than x, the rest of x is not read.
  Tensor from = x;
  for (int i = 0; i < x.dim(); ++i) {
    const bool along = i == dim || i == dim + x.dim();
    if (!along && index.size(i) < x.size(i)) {
      from = Slice(from, i, 0, index.size(i), 1, at);
    }
  }
  return ApplyContiguous(primitive, {&from, &index}, at);
}

Tensor IndexAdd(const Tensor& x, int dim, const Tensor& index,
                const Tensor& source, SourceLocation at) {
  return ApplyContiguous(IndexAddPrimitive(kernels::IndexOp::kSelect, dim),
                         {&x, &index, &source}, at);
}

Tensor ScatterAdd(const Tensor& x, int dim, const Tensor& index,
                  const Tensor& source, SourceLocation at) {
  const char* const name = "scatter_add";
  for (const Tensor* tensor : {&x, &index, &source})
    CheckDefined(name, *tensor, at);
  if (x.dim() == 0 || index.dim() == 0 || source.dim() == 0) {
    // A scalar counts as a vector of one element.
    const auto vector = [at](const Tensor& y) {
      return y.dim() == 0 ? View(y, {1}, at) : y;
    };
    return Reshape(
        ScatterAdd(vector(x), dim, vector(index), vector(source), at),
        x.shape(), at);
  }
  const int along = WithLine(at, [&] { return WrapDim(name, dim, x.dim()); });
  if (index.numel() == 0 && index.dtype() == DType::kInt64) return Clone(x, at);
  bool fits = index.dim() == x.dim() && source.dim() == x.dim();
  for (int i = 0; i < x.dim() && fits; ++i) {
    fits = index.size(i) <= source.size(i) &&
           (i == along || index.size(i) <= x.size(i));
  }
  if (!fits) {
    RejectAt(
        at,
        "[%s] an index wanted with as many dimensions as the tensor and the "
        "source, none longer than theirs, but than the tensor's dimension "
        "%d: index %s, tensor %s, source %s",
        name, along, index.shape(), x.shape(), source.shape());
  }
  // Where the index is shorter, the rest of the source is not read, and that of
  // x is unchanged.
  Tensor from = source;
  for (int i = 0; i < x.dim(); ++i) {
    const std::int64_t size = index.size(i);
    if (size < from.size(i)) from = Slice(from, i, 0, size, 1, at);
  }
  for (int i = 0; i < x.dim(); ++i) {
    const std::int64_t size = index.size(i);
    if (i == along || size == x.size(i)) continue;
    const Tensor rest = Slice(x, i, size, x.size(i), 1, at);
    return Cat(
        {ScatterAdd(Slice(x, i, 0, size, 1, at), dim, index, from, at), rest},
        i, at);
  }
  return ApplyContiguous(IndexAddPrimitive(kernels::IndexOp::kGather, dim),
                         {&x, &index, &from}, at);
}

}  // namespace d2l
