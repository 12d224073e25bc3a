#include "common/kernels/layout.h"

#include <cstdint>
#include <utility>

#include "absl/types/span.h"

namespace d2l::kernels {
namespace {

constexpr int kMaxOperands = kMaxInputs + 1;

void CollapseDims(Shape& shape, absl::Span<Shape* const> strides) {
  // Built in place, from the outermost dimension: `to` dimensions are ready.
  int to = 0;
  for (int from = 0; from < shape.rank(); ++from) {
    const std::int64_t size = shape[from];
    if (size == 1) continue;
    bool joins = to > 0;
    for (const Shape* s : strides) {
      joins = joins && (*s)[to - 1] == (*s)[from] * size;
    }
    if (joins) {
      shape[to - 1] *= size;
    } else {
      shape[to++] = size;
    }
    for (Shape* s : strides) (*s)[to - 1] = (*s)[from];
  }
  shape = Shape(absl::MakeConstSpan(shape.data(), to));
  for (Shape* s : strides) *s = Shape(absl::MakeConstSpan(s->data(), to));
}

// Sorts the dimensions so that the first of `strides` decreases. There are few,
// so a simple sort will do.
template <int kCount>
void SortDims(Shape* const (&shapes)[kCount], const Shape& strides) {
  for (int i = 1; i < strides.rank(); ++i) {
    for (int j = i; j > 0 && strides[j - 1] < strides[j]; --j) {
      for (Shape* shape : shapes) std::swap((*shape)[j - 1], (*shape)[j]);
    }
  }
}

}  // namespace

bool Collapse(StridedLayout& layout, int inputs) {
  Shape* strides[kMaxOperands] = {&layout.out};
  for (int i = 0; i < inputs; ++i) strides[i + 1] = &layout.in[i];
  const absl::Span<Shape* const> all(strides, inputs + 1);
  CollapseDims(layout.shape, all);
  if (layout.shape.empty()) {
    layout.shape = {1};
    for (Shape* s : all) *s = {1};
  }
  if (layout.shape.rank() > 1) return false;
  for (const Shape* s : all) {
    if ((*s)[0] != 1) return false;
  }
  return true;
}

void Collapse(ReduceLayout& layout) {
  Shape* const kept = &layout.kept_strides;
  Shape* const reduced = &layout.reduced_strides;
  CollapseDims(layout.kept, {kept});
  CollapseDims(layout.reduced, {reduced});
}

bool SortAndCollapse(StridedLayout& layout, int inputs) {
  // An unused input has no dimensions, but is sorted with the others.
  for (int i = inputs; i < kMaxInputs; ++i) {
    layout.in[i] = Shape::Filled(layout.shape.rank(), 0);
  }
  SortDims(
      {&layout.shape, &layout.in[0], &layout.in[1], &layout.in[2], &layout.out},
      layout.out);
  return Collapse(layout, inputs);
}

void SortReduced(ReduceLayout& layout) {
  SortDims({&layout.reduced, &layout.reduced_strides}, layout.reduced_strides);
  Collapse(layout);
}

bool HasColumns(const ReduceLayout& layout) {
  const int kept = layout.kept.rank();
  const int reduced = layout.reduced.rank();
  if (kept == 0 || layout.kept_strides[kept - 1] != 1) return false;
  return reduced == 0 || layout.reduced_strides[reduced - 1] != 1;
}

}  // namespace d2l::kernels
