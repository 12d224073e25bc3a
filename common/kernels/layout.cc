#include "common/kernels/layout.h"

#include <cstdint>

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

}  // namespace d2l::kernels
