#include <cstdint>
#include <stdexcept>

#include "common/ops/copy.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/reject.h"

namespace d2l {
namespace {

using kernels::Conv2dArgs;
using kernels::Conv2dPass;

// The sizes of a convolution. Throws std::invalid_argument if x and the weight
// do not go together.
Conv2dArgs ArgsOf(const char* operation, const Shape& x, const Shape& weight,
                  const Conv2dOptions& options) {
  if (x.rank() != 4) {
    Reject(
        "[%s] images of shape (batch, channels, height, width) wanted; got %s; "
        "for one image of three dimensions: Unsqueeze(x, 0)",
        operation, x);
  }
  if (weight.rank() != 4 || weight[0] < 1 || weight[1] < 1) {
    Reject(
        "[%s] a weight of shape (out_channels, in_channels, kernel_height, "
        "kernel_width), none of them 0, wanted; got %s",
        operation, weight);
  }
  if (x[1] != weight[1]) {
    Reject(
        "[%s] a weight of shape %s wants images with %d channels; got %d, in "
        "%s",
        operation, weight, weight[1], x[1], x);
  }
  Conv2dArgs args = {};
  args.batch = x[0];
  args.in_channels = weight[1];
  args.out_channels = weight[0];
  args.window = MakeWindow(operation, x, {weight[2], weight[3]}, options.stride,
                           options.padding);
  return args;
}

Shape OutputShape(const Conv2dArgs& args) {
  return {args.batch, args.out_channels, args.window.out_height,
          args.window.out_width};
}

void CheckOperand(const char* operation, const Tensor& x, const Tensor& first) {
  CheckFloatingPoint(operation, x);
  CheckContiguous(operation, x);
  if (x.dtype() == first.dtype()) return;
  Reject(
      "[%s] operands of one dtype wanted; got %s and %s; convert one of them: "
      "To(x, DType)",
      operation, first, x);
}

void VisitOptions(Fields& field, Conv2dOptions& options) {
  VisitSize(field, "stride", options.stride);
  VisitSize(field, "padding", options.padding);
}

std::uint64_t LaunchConv2d(const LaunchContext& ctx, Conv2dPass pass,
                           Conv2dArgs args) {
  args.pass = pass;
  args.dtype = ctx.output.dtype();
  args.out = ctx.output.data();
  args.first = ctx.inputs[0]->data();
  args.second = ctx.inputs[1]->data();
  if (ctx.inputs.size() > 2) args.bias = ctx.inputs[2]->data();
  return Enqueue(ctx, args);
}

}  // namespace

ValueSpec Conv2dPrimitive::Infer(Inputs inputs) const {
  if (inputs.size() != 2) CheckInputCount(name(), inputs, 3);
  const Tensor& x = *inputs[0];
  for (const Tensor* input : inputs) CheckOperand(name(), *input, x);
  const Conv2dArgs args =
      ArgsOf(name(), x.shape(), inputs[1]->shape(), options);
  if (inputs.size() > 2 && inputs[2]->shape() != Shape({args.out_channels})) {
    Reject(
        "[%s] a bias of shape (%d), a number for each output channel of the "
        "weight, wanted; got %s",
        name(), args.out_channels, inputs[2]->shape());
  }
  const Shape shape = OutputShape(args);
  CheckedNumel(name(), shape, DTypeSize(x.dtype()));
  return {shape, x.dtype(), x.device()};
}

std::uint64_t Conv2dPrimitive::Launch(const LaunchContext& ctx) const {
  return LaunchConv2d(
      ctx, Conv2dPass::kForward,
      ArgsOf(name(), ctx.inputs[0]->shape(), ctx.inputs[1]->shape(), options));
}

void Conv2dPrimitive::Visit(Fields& field) { VisitOptions(field, options); }

ValueSpec Conv2dBackwardPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 2);
  const Tensor& dy = *inputs[0];
  const Tensor& other = *inputs[1];
  CheckOperand(name(), dy, dy);
  CheckOperand(name(), other, dy);
  CheckedNumel(name(), shape, DTypeSize(dy.dtype()));
  const Conv2dArgs args = of_weight
                              ? ArgsOf(name(), other.shape(), shape, options)
                              : ArgsOf(name(), shape, other.shape(), options);
  if (dy.shape() != OutputShape(args)) {
    Reject("[%s] the gradient of an output of shape %s wanted; got %s", name(),
           OutputShape(args), dy.shape());
  }
  return {shape, dy.dtype(), dy.device()};
}

std::uint64_t Conv2dBackwardPrimitive::Launch(const LaunchContext& ctx) const {
  const Shape& other = ctx.inputs[1]->shape();
  return LaunchConv2d(
      ctx, of_weight ? Conv2dPass::kWeightGradient : Conv2dPass::kInputGradient,
      of_weight ? ArgsOf(name(), other, shape, options)
                : ArgsOf(name(), shape, other, options));
}

void Conv2dBackwardPrimitive::Visit(Fields& field) {
  VisitOptions(field, options);
  field("shape", shape);
}

Tensor Conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options, SourceLocation at) {
  const Conv2dPrimitive primitive(options);
  if (!bias.defined()) return ApplyContiguous(primitive, {&x, &weight}, at);
  return ApplyContiguous(primitive, {&x, &weight, &bias}, at);
}

}  // namespace d2l
