#include "common/ops/primitive/launch.h"

#include <initializer_list>

namespace d2l {

Shape BroadcastStrides(const Shape& sizes, const Shape& strides,
                       const Shape& out) {
  Shape result = Shape::Filled(out.rank(), 0);
  const int missing = out.rank() - sizes.rank();
  for (int i = 0; i < sizes.rank(); ++i) {
    if (sizes[i] != 1) result[missing + i] = strides[i];
  }
  return result;
}

Split3 SplitAround(const Shape& shape, int dim) {
  Split3 split;
  for (int i = 0; i < shape.rank(); ++i) {
    (i < dim ? split.outer : i == dim ? split.size : split.inner) *= shape[i];
  }
  return split;
}

void CopyUnlessSame(const LaunchContext& ctx) {
  const Tensor &input = *ctx.inputs[0], &output = ctx.output;
  CheckContiguous(ctx.label.name(), output);
  if (input.data() == output.data()) return;
  Enqueue(ctx, kernels::CopyArgs{output.dtype(), input.dtype(), output.numel(),
                                 output.data(), input.data(), nullptr});
}

void LaunchLayout::Make(const Tensor& output,
                        std::initializer_list<const Tensor*> inputs) {
  kernels::StridedLayout& layout = layout_.emplace();
  layout.shape = output.shape();
  layout.out = output.strides();
  int count = 0;
  for (const Tensor* input : inputs) {
    layout.in[count++] =
        input == nullptr ? Shape::Filled(output.dim(), 0)
                         : BroadcastStrides(input->shape(), input->strides(),
                                            output.shape());
  }
  // A scalar's strides stay 0, so they count as not contiguous; the kernel
  // knows that it is one.
  if (kernels::Collapse(layout, count)) layout_.reset();
}

}  // namespace d2l
