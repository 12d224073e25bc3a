#include "common/ops/launch.h"

#include <initializer_list>

namespace d2l {

Shape BroadcastStrides(const Tensor& input, const Shape& out) {
  Shape strides = Shape::Filled(out.rank(), 0);
  const int missing = out.rank() - input.dim();
  for (int i = 0; i < input.dim(); ++i) {
    if (input.size(i) != 1) strides[missing + i] = input.strides()[i];
  }
  return strides;
}

Split3 SplitAround(const Shape& shape, int dim) {
  Split3 split;
  for (int i = 0; i < shape.rank(); ++i) {
    (i < dim ? split.outer : i == dim ? split.size : split.inner) *= shape[i];
  }
  return split;
}

void LaunchLayout::Make(const Tensor& output,
                        std::initializer_list<const Tensor*> inputs) {
  kernels::StridedLayout& layout = layout_.emplace();
  layout.shape = output.shape();
  layout.out = output.strides();
  int count = 0;
  for (const Tensor* input : inputs) {
    layout.in[count++] = input == nullptr
                             ? Shape::Filled(output.dim(), 0)
                             : BroadcastStrides(*input, output.shape());
  }
  // A scalar's strides stay 0, so they count as not contiguous; the kernel
  // knows that it is one.
  if (kernels::Collapse(layout, count)) layout_.reset();
}

}  // namespace d2l
