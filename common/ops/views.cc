#include "common/ops/views.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ops/copy.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/reject.h"

namespace d2l {
namespace {

// The shape without, or with, one dimension.
Shape Without(const Shape& shape, int dim) {
  Shape result = Shape::Filled(shape.rank() - 1, 0);
  for (int i = 0; i < result.rank(); ++i) result[i] = shape[i + (i >= dim)];
  return result;
}
Shape With(const Shape& shape, int dim, std::int64_t size) {
  Shape result = Shape::Filled(shape.rank() + 1, size);
  for (int i = 0; i < shape.rank(); ++i) result[i + (i >= dim)] = shape[i];
  return result;
}

// A valid dimension of x; a scalar has none.
int CheckedDim(const char* operation, int dim, const Tensor& x) {
  if (x.dim() == 0) {
    Reject("[%s] the tensor is a scalar: it has no dimension %d", operation,
           dim);
  }
  return WrapDim(operation, dim, x.dim());
}

// `shape` with its -1 replaced, for as many elements as x has.
Shape FillIn(const char* operation, const Shape& shape, const Tensor& x) {
  int unknown = -1;
  Shape known = shape;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != -1) continue;
    if (unknown >= 0) {
      Reject("[%s] only one size may be -1: %s", operation, shape);
    }
    unknown = i;
    known[i] = 1;
  }
  const std::int64_t numel = CheckedNumel(operation, known, 1);
  if (unknown >= 0 && numel > 0 && x.numel() % numel == 0) {
    known[unknown] = x.numel() / numel;
  } else if (unknown >= 0 && numel == 0) {
    Reject(
        "[%s] the -1 in %s could be any number: the other sizes have no "
        "elements",
        operation, shape);
  }
  if (known.numel() != x.numel()) {
    Reject("[%s] %s has %d elements, which do not make %s", operation,
           x.shape(), x.numel(), shape);
  }
  return known;
}

// Finds the strides with which x's memory, row by row, has another shape of as
// many elements; false if there are none.
bool FindStrides(const Tensor& x, const Shape& shape, Shape& strides) {
  if (x.is_contiguous()) {
    strides = ContiguousStrides(shape);
    return true;
  }
  strides = Shape::Filled(shape.rank(), 1);
  int to = shape.rank() - 1;
  // Runs of x's dimensions that are stepped through as one, from the end.
  for (int last = x.dim() - 1; last >= 0;) {
    if (x.size(last) == 1) {
      --last;
      continue;
    }
    int first = last;
    std::int64_t numel = x.size(last);
    for (int next = first - 1; next >= 0; --next) {
      if (x.size(next) == 1) continue;
      if (x.strides()[next] != x.strides()[first] * x.size(first)) break;
      numel *= x.size(next);
      first = next;
    }
    // New dimensions must fill the run exactly.
    std::int64_t stride = x.strides()[last];
    std::int64_t filled = 1;
    while (filled < numel && to >= 0) {
      strides[to] = stride;
      stride *= shape[to];
      filled *= shape[to];
      --to;
    }
    if (filled != numel) return false;
    last = first - 1;
    while (last >= 0 && x.size(last) == 1) --last;
  }
  return true;
}

}  // namespace

ReshapePrimitive::Spec ReshapePrimitive::View(const Tensor& x) const {
  const Shape shape = FillIn(name(), this->shape, x);
  Shape strides;
  if (!FindStrides(x, shape, strides)) {
    Reject(
        "[view] %s with strides %s cannot be seen as %s; use Reshape, which "
        "copies if it must",
        x.shape(), x.strides(), shape);
  }
  return {x.offset(), shape, strides};
}

TransposePrimitive::Spec TransposePrimitive::View(const Tensor& x) const {
  const int dim0 = CheckedDim(name(), this->dim0, x);
  const int dim1 = CheckedDim(name(), this->dim1, x);
  Spec spec = {x.offset(), x.shape(), x.strides()};
  std::swap(spec.shape[dim0], spec.shape[dim1]);
  std::swap(spec.strides[dim0], spec.strides[dim1]);
  return spec;
}

SlicePrimitive::Spec SlicePrimitive::View(const Tensor& x) const {
  const int dim = CheckedDim(name(), this->dim, x);
  if (step < 1) Reject("[slice] the step must be at least 1; got %d", step);
  const std::int64_t size = x.size(dim);
  const auto bound = [size](std::int64_t i) {
    return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size);
  };
  const std::int64_t start = bound(this->start);
  const std::int64_t length = std::max<std::int64_t>(bound(end) - start, 0);
  Spec spec = {x.offset() + start * x.strides()[dim], x.shape(), x.strides()};
  spec.shape[dim] = length / step + (length % step != 0);
  // A step beyond the end is never taken.
  if (spec.shape[dim] > 1) spec.strides[dim] *= step;
  return spec;
}

SelectPrimitive::Spec SelectPrimitive::View(const Tensor& x) const {
  const int dim = CheckedDim(name(), this->dim, x);
  const std::int64_t size = x.size(dim);
  if (index < -size || index >= size) {
    Reject("[select] index %d is out of range for dimension %d of %s", index,
           dim, x.shape());
  }
  const std::int64_t index = this->index < 0 ? this->index + size : this->index;
  return {x.offset() + index * x.strides()[dim], Without(x.shape(), dim),
          Without(x.strides(), dim)};
}

SqueezePrimitive::Spec SqueezePrimitive::View(const Tensor& x) const {
  Spec spec = {x.offset(), x.shape(), x.strides()};
  const auto drop = [&spec](int dim) {
    spec.shape = Without(spec.shape, dim);
    spec.strides = Without(spec.strides, dim);
  };
  if (dim != kAllDims) {
    const int dim = WrapDim(name(), this->dim, x.dim());
    if (x.dim() > 0 && x.size(dim) == 1) drop(dim);
    return spec;
  }
  for (int i = x.dim() - 1; i >= 0; --i) {
    if (x.size(i) == 1) drop(i);
  }
  return spec;
}

UnsqueezePrimitive::Spec UnsqueezePrimitive::View(const Tensor& x) const {
  const int dim = WrapDim(name(), this->dim, x.dim() + 1);
  const std::int64_t stride =
      dim < x.dim() ? x.size(dim) * x.strides()[dim] : 1;
  return {x.offset(), With(x.shape(), dim, 1), With(x.strides(), dim, stride)};
}

ExpandPrimitive::Spec ExpandPrimitive::View(const Tensor& x) const {
  const int missing = shape.rank() - x.dim();
  Spec spec = {x.offset(), shape, Shape::Filled(shape.rank(), 0)};
  bool fits = missing >= 0;
  for (int i = 0; i < shape.rank() && fits; ++i) {
    const int dim = i - missing;
    if (dim < 0) {
      fits = shape[i] >= 0;
    } else if (shape[i] == -1 || shape[i] == x.size(dim)) {
      spec.shape[i] = x.size(dim);
      spec.strides[i] = x.strides()[dim];
    } else {
      fits = x.size(dim) == 1;
    }
  }
  if (!fits) {
    Reject(
        "[expand] %s does not expand to %s: only dimensions of size 1 can be "
        "repeated, and new ones come first",
        x.shape(), shape);
  }
  CheckedNumel(name(), spec.shape, DTypeSize(x.dtype()));
  return spec;
}

int WrapDim(const char* operation, int dim, int rank) {
  // PyTorch counts a scalar as having one dimension here.
  const int count = std::max(rank, 1);
  if (dim < -count || dim >= count) {
    Reject("[%s] dimension %d is out of range; valid are %d to %d", operation,
           dim, -count, count - 1);
  }
  return dim < 0 ? dim + count : dim;
}

Tensor internal::WholeView(const Tensor& x, SourceLocation at) {
  return no_grad_guards > 0 ? Expand(x, x.shape(), at) : x;
}

Tensor View(const Tensor& x, const Shape& shape, SourceLocation at) {
  return ApplyView(ReshapePrimitive(shape), x, at);
}

Tensor Reshape(const Tensor& x, const Shape& shape, SourceLocation at) {
  if (x.defined() && !x.is_contiguous()) {
    Shape strides;
    const Shape known =
        WithLine(at, [&] { return FillIn("reshape", shape, x); });
    if (!FindStrides(x, known, strides)) {
      return View(Contiguous(x, at), known, at);
    }
  }
  return View(x, shape, at);
}

Tensor T(const Tensor& x, SourceLocation at) {
  if (x.defined() && x.dim() < 2) return internal::WholeView(x, at);
  if (x.defined() && x.dim() > 2) {
    RejectAt(at,
             "[t] a matrix wanted; got %s; name the two dimensions with "
             "Transpose(x, dim0, dim1)",
             x.shape());
  }
  return ApplyView(TransposePrimitive(0, 1), x, at);
}

Tensor Transpose(const Tensor& x, int dim0, int dim1, SourceLocation at) {
  if (x.defined() && x.dim() == 0) {
    return WithLine(at, [&] {
      WrapDim("transpose", dim0, 0);
      WrapDim("transpose", dim1, 0);
      return internal::WholeView(x, at);
    });
  }
  return ApplyView(TransposePrimitive(dim0, dim1), x, at);
}

Tensor Slice(const Tensor& x, int dim, std::int64_t start, std::int64_t end,
             std::int64_t step, SourceLocation at) {
  return ApplyView(SlicePrimitive(dim, start, end, step), x, at);
}

Tensor Select(const Tensor& x, int dim, std::int64_t index, SourceLocation at) {
  return ApplyView(SelectPrimitive(dim, index), x, at);
}

Tensor Squeeze(const Tensor& x, SourceLocation at) {
  return ApplyView(SqueezePrimitive(SqueezePrimitive::kAllDims), x, at);
}

Tensor Squeeze(const Tensor& x, int dim, SourceLocation at) {
  return ApplyView(SqueezePrimitive(dim), x, at);
}

Tensor Unsqueeze(const Tensor& x, int dim, SourceLocation at) {
  return ApplyView(UnsqueezePrimitive(dim), x, at);
}

Tensor Expand(const Tensor& x, const Shape& shape, SourceLocation at) {
  return ApplyView(ExpandPrimitive(shape), x, at);
}

std::vector<Tensor> Split(const Tensor& x, std::int64_t size, int dim,
                          SourceLocation at) {
  CheckDefined("split", x, at);
  dim = WithLine(at, [&] { return WrapDim("split", dim, x.dim()); });
  const bool nothing = x.dim() > 0 && x.size(dim) == 0 && size == 0;
  if (x.dim() == 0 || (size < 1 && !nothing)) {
    RejectAt(
        at,
        "[split] pieces of size %d of %s: the size must be at least 1, and "
        "a dimension there",
        size, x);
  }
  std::vector<Tensor> pieces;
  std::int64_t start = 0;
  do {
    const std::int64_t end = start + std::min(size, x.size(dim) - start);
    pieces.push_back(Slice(x, dim, start, end, 1, at));
    start = end;
  } while (start < x.size(dim));
  return pieces;
}

std::vector<Tensor> SplitWithSizes(const Tensor& x,
                                   absl::Span<const std::int64_t> sizes,
                                   int dim, SourceLocation at) {
  CheckDefined("split", x, at);
  dim = WithLine(at, [&] { return WrapDim("split", dim, x.dim()); });
  std::int64_t left = x.dim() == 0 ? -1 : x.size(dim);
  for (const std::int64_t size : sizes) {
    left = size < 0 || size > left ? -1 : left - size;
    if (left < 0) break;
  }
  if (left != 0) {
    RejectAt(
        at, "[split] pieces of sizes %s do not add up to dimension %d of %s",
        absl::StrCat("(", absl::StrJoin(sizes, ", "), ")"), dim, x.shape());
  }
  std::vector<Tensor> pieces;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    pieces.push_back(Slice(x, dim, start, start + size, 1, at));
    start += size;
  }
  return pieces;
}

}  // namespace d2l
