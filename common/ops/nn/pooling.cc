#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/ops/copy.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/reject.h"

namespace d2l {
namespace {

kernels::Window2d WindowOf(const char* operation, const Pooling& pooling,
                           const Shape& images) {
  if (images.rank() != 3 && images.rank() != 4) {
    Reject(
        "[%s] images of shape (batch, channels, height, width) or (channels, "
        "height, width) wanted; got %s",
        operation, images);
  }
  const Size2d kernel = pooling.kernel;
  const Size2d padding = pooling.padding;
  if (padding.height > kernel.height / 2 || padding.width > kernel.width / 2) {
    Reject(
        "[%s] a padding of at most half the kernel wanted; got padding %s, "
        "kernel %s",
        operation, ToShape(padding), ToShape(kernel));
  }
  return MakeWindow(operation, images, kernel, pooling.stride, padding);
}

Shape Pooled(const Shape& images, const kernels::Window2d& window) {
  Shape shape = images;
  shape[shape.rank() - 2] = window.out_height;
  shape[shape.rank() - 1] = window.out_width;
  return shape;
}

std::int64_t CountImages(const Shape& images) {
  return SplitAround(images, images.rank() - 2).outer;
}

void VisitPooling(Fields& field, Pooling& pooling) {
  VisitSize(field, "kernel_size", pooling.kernel);
  VisitSize(field, "stride", pooling.stride);
  VisitSize(field, "padding", pooling.padding);
}

}  // namespace

ValueSpec Pool2dPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 1);
  const Tensor& x = *inputs[0];
  CheckContiguous(name(), x);
  CheckFloatingPoint(name(), x);
  return {Pooled(x.shape(), WindowOf(name(), pooling, x.shape())), x.dtype(),
          x.device()};
}

std::uint64_t Pool2dPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[0];
  return Enqueue(ctx, kernels::Pool2dArgs{pooling.max ? kernels::Pool2dOp::kMax
                                                      : kernels::Pool2dOp::kAvg,
                                          x.dtype(), CountImages(x.shape()),
                                          WindowOf(name(), pooling, x.shape()),
                                          ctx.output.data(), x.data()});
}

void Pool2dPrimitive::Visit(Fields& field) { VisitPooling(field, pooling); }

ValueSpec Pool2dBackwardPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, pooling.max ? 2 : 1);
  const Tensor& dy = *inputs[0];
  CheckFloatingPoint(name(), dy);
  for (const Tensor* input : inputs) CheckContiguous(name(), *input);
  const Shape wanted = Pooled(shape, WindowOf(name(), pooling, shape));
  const bool fits = dy.shape() == wanted &&
                    (!pooling.max || (inputs[1]->shape() == shape &&
                                      inputs[1]->dtype() == dy.dtype()));
  if (!fits) {
    Reject(
        "[%s] the gradient of an output of shape %s, and an input of shape %s "
        "and of its dtype, wanted; got %s and %s",
        name(), wanted, shape, dy,
        pooling.max ? inputs[1]->Describe() : "no input");
  }
  CheckedNumel(name(), shape, DTypeSize(dy.dtype()));
  return {shape, dy.dtype(), dy.device()};
}

std::uint64_t Pool2dBackwardPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& dy = *ctx.inputs[0];
  return Enqueue(
      ctx, kernels::Pool2dArgs{pooling.max ? kernels::Pool2dOp::kMaxGradient
                                           : kernels::Pool2dOp::kAvgGradient,
                               dy.dtype(), CountImages(shape),
                               WindowOf(name(), pooling, shape),
                               ctx.output.data(), dy.data(),
                               pooling.max ? ctx.inputs[1]->data() : nullptr});
}

void Pool2dBackwardPrimitive::Visit(Fields& field) {
  VisitPooling(field, pooling);
  field("shape", shape);
}

namespace {

Tensor Pool(bool max, const Tensor& x, Size2d kernel,
            std::optional<Size2d> stride, Size2d padding, SourceLocation at) {
  const Pooling pooling = {max, kernel, stride.value_or(kernel), padding};
  return ApplyContiguous(Pool2dPrimitive(pooling), {&x}, at);
}

}  // namespace

Tensor AvgPool2d(const Tensor& x, Size2d kernel, std::optional<Size2d> stride,
                 Size2d padding, SourceLocation at) {
  return Pool(/*max=*/false, x, kernel, stride, padding, at);
}

Tensor MaxPool2d(const Tensor& x, Size2d kernel, std::optional<Size2d> stride,
                 Size2d padding, SourceLocation at) {
  return Pool(/*max=*/true, x, kernel, stride, padding, at);
}

}  // namespace d2l
