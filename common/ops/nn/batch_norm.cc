#include <cstdint>

#include "common/ops/copy.h"
#include "common/ops/elementwise.h"
#include "common/ops/joining.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/reject.h"
#include "common/ops/views.h"
#include "common/tensor/scalar.h"

namespace d2l {
namespace {

void CheckImages(const char* name, const Tensor& x) {
  CheckContiguous(name, x);
  CheckFloatingPoint(name, x);
  if (x.dim() >= 2) return;
  Reject("[%s] a tensor of shape (batch, channels, …) wanted; got %s", name, x);
}

void CheckLike(const char* name, const char* what, const Tensor& y,
               const Shape& shape, const Tensor& x) {
  if (y.shape() != shape || y.dtype() != x.dtype()) {
    Reject("[%s] %s: %s of shape %s wanted, as x has %d channels; got %s", name,
           what, x.dtype(), shape, x.size(1), y);
  }
  CheckContiguous(name, y);
}

Shape StatisticsShape(const Tensor& x) { return {2, x.size(1)}; }

// (batch, channels, inner).
Split3 SplitOf(const Tensor& x) { return SplitAround(x.shape(), 1); }

}  // namespace

ValueSpec BatchNormStatisticsPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 1);
  const Tensor& x = *inputs[0];
  CheckImages(name(), x);
  const Split3 split = SplitOf(x);
  if (split.outer * split.inner == 0) {
    Reject("[%s] at least one value per channel wanted, got input size %s",
           name(), x.shape());
  }
  return {StatisticsShape(x), x.dtype(), x.device()};
}

std::uint64_t BatchNormStatisticsPrimitive::Launch(
    const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[0];
  const auto [batch, channels, inner] = SplitOf(x);
  return Enqueue(
      ctx, kernels::BatchNormArgs{kernels::BatchNormPass::kStatistics,
                                  x.dtype(), batch, channels, inner, /*eps=*/0,
                                  ctx.output.data(), x.data()});
}

ValueSpec BatchNormPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 4);
  const Tensor& x = *inputs[0];
  CheckImages(name(), x);
  CheckLike(name(), "statistics", *inputs[1], StatisticsShape(x), x);
  CheckLike(name(), "weight", *inputs[2], {x.size(1)}, x);
  CheckLike(name(), "bias", *inputs[3], {x.size(1)}, x);
  return {x.shape(), x.dtype(), x.device()};
}

std::uint64_t BatchNormPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[0];
  const auto [batch, channels, inner] = SplitOf(x);
  return Enqueue(
      ctx, kernels::BatchNormArgs{
               kernels::BatchNormPass::kForward, x.dtype(), batch, channels,
               inner, eps, ctx.output.data(), x.data(), ctx.inputs[1]->data(),
               ctx.inputs[2]->data(), ctx.inputs[3]->data()});
}

ValueSpec BatchNormBackwardReducePrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 3);
  const Tensor& x = *inputs[1];
  CheckImages(name(), x);
  CheckLike(name(), "gradient", *inputs[0], x.shape(), x);
  CheckLike(name(), "statistics", *inputs[2], StatisticsShape(x), x);
  return {StatisticsShape(x), x.dtype(), x.device()};
}

std::uint64_t BatchNormBackwardReducePrimitive::Launch(
    const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[1];
  const auto [batch, channels, inner] = SplitOf(x);
  return Enqueue(ctx, kernels::BatchNormArgs{kernels::BatchNormPass::kSums,
                                             x.dtype(), batch, channels, inner,
                                             eps, ctx.output.data(), x.data(),
                                             ctx.inputs[2]->data(), nullptr,
                                             nullptr, ctx.inputs[0]->data()});
}

ValueSpec BatchNormBackwardPrimitive::Infer(Inputs inputs) const {
  const bool training = inputs.size() == 5;
  CheckInputCount(name(), inputs, training ? 5 : 4);
  const Tensor& x = *inputs[1];
  CheckImages(name(), x);
  CheckLike(name(), "gradient", *inputs[0], x.shape(), x);
  CheckLike(name(), "statistics", *inputs[2], StatisticsShape(x), x);
  CheckLike(name(), "weight", *inputs[3], {x.size(1)}, x);
  if (training) {
    CheckLike(name(), "sums", *inputs[4], StatisticsShape(x), x);
  }
  return {x.shape(), x.dtype(), x.device()};
}

std::uint64_t BatchNormBackwardPrimitive::Launch(
    const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[1];
  const auto [batch, channels, inner] = SplitOf(x);
  return Enqueue(
      ctx,
      kernels::BatchNormArgs{
          kernels::BatchNormPass::kInputGradient, x.dtype(), batch, channels,
          inner, eps, ctx.output.data(), x.data(), ctx.inputs[2]->data(),
          ctx.inputs[3]->data(), nullptr, ctx.inputs[0]->data(),
          ctx.inputs.size() == 5 ? ctx.inputs[4]->data() : nullptr});
}

Tensor BatchNorm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const Tensor& running_mean, const Tensor& running_var,
                 bool training, double momentum, double eps,
                 SourceLocation at) {
  const char* const name = "batch_norm";
  for (const Tensor* tensor : {&x, &weight, &bias, &running_mean, &running_var})
    CheckDefined(name, *tensor, at);
  const Tensor dense = Contiguous(x, at);
  WithLine(at, [&] {
    CheckImages(name, dense);
    CheckLike(name, "running_mean", running_mean, {x.size(1)}, x);
    CheckLike(name, "running_var", running_var, {x.size(1)}, x);
    if (training && x.numel() != 0 && x.numel() == x.size(1)) {
      Reject(
          "[%s] Expected more than 1 value per channel when training, got "
          "input size %s; a larger batch, or training = false",
          name, x.shape());
    }
  });
  // Without values there are no statistics: the running values stay.
  training = training && x.numel() != 0;
  Tensor statistics;
  {
    // The gradient's rule includes the path through the statistics.
    const NoGradGuard guard;
    statistics = training ? Apply(BatchNormStatisticsPrimitive(), {&dense}, at)
                          : Stack({running_mean, running_var}, 0, at);
  }
  const Tensor y = ApplyContiguous(BatchNormPrimitive(training, eps),
                                   {&dense, &statistics, &weight, &bias}, at);
  if (training) {
    const NoGradGuard guard;
    const double n =
        static_cast<double>(x.numel()) / static_cast<double>(x.size(1));
    AxpbyInPlace(running_mean, momentum, Select(statistics, 0, 0, at),
                 1 - momentum, at);
    AxpbyInPlace(running_var, momentum * n / (n - 1),
                 Select(statistics, 0, 1, at), 1 - momentum, at);
  }
  return y;
}

}  // namespace d2l
