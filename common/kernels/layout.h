// The layout of strided operands.
//
//   StridedLayout layout = {{1000, 1000}, {1000, 1}, {{1, 1000}}};
//   if (Collapse(layout, /*inputs=*/1)) … // all contiguous: a plain loop
//
// Strides count elements. A broadcast dimension has stride 0. All functions
// are pure.

#ifndef D2L_COMMON_KERNELS_LAYOUT_H_
#define D2L_COMMON_KERNELS_LAYOUT_H_

#include "common/tensor/shape.h"

namespace d2l::kernels {

inline constexpr int kMaxInputs = 3;

// A shape, and for each operand the strides that go with it.
struct StridedLayout {
  Shape shape;
  Shape out;
  Shape in[kMaxInputs];
};

// Drops dimensions of size 1 and joins dimensions that every operand steps
// through as if they were one, so that the last dimension is as long as it can
// be. At least one dimension is left if there are elements. Returns whether
// every operand turned out contiguous: then no layout is needed.
bool Collapse(StridedLayout& layout, int inputs);

// Collapse of the dimensions in the order of the output's memory. For
// operations that do not mind in which order the elements are numbered.
bool SortAndCollapse(StridedLayout& layout, int inputs);

// The layout of a reduction: how the input is stepped through for each output,
// and from one output to the next. The outputs are contiguous.
struct ReduceLayout {
  Shape kept;
  Shape kept_strides;
  Shape reduced;
  Shape reduced_strides;
};

// Collapses each half as above; a half without dimensions has one element. The
// order of the reduced elements stays as it is.
void Collapse(ReduceLayout& layout);

// Collapse of the reduced dimensions in the order of the input's memory.
void SortReduced(ReduceLayout& layout);

// Whether neighbouring outputs lie side by side, and one output's elements do
// not.
bool HasColumns(const ReduceLayout& layout);

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_LAYOUT_H_
