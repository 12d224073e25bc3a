#include <cstdint>

#include "common/ops/copy.h"
#include "common/ops/joining.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/reject.h"

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
  const bool updates = inputs.size() != 1;
  CheckInputCount(name(), inputs, updates ? 3 : 1);
  const Tensor& x = *inputs[0];
  CheckImages(name(), x);
  if (updates) {
    CheckLike(name(), "running_mean", *inputs[1], {x.size(1)}, x);
    CheckLike(name(), "running_var", *inputs[2], {x.size(1)}, x);
  }
  const Split3 split = SplitOf(x);
  if (split.outer * split.inner == 0) {
    Reject("[%s] at least one value per channel wanted, got input size %s",
           name(), x.shape());
  }
  if (updates && split.outer * split.inner == 1) {
    Reject(
        "[%s] more than one value per channel wanted for running values, got "
        "input size %s",
        name(), x.shape());
  }
  return {StatisticsShape(x), x.dtype(), x.device()};
}

std::uint64_t BatchNormStatisticsPrimitive::Launch(
    const LaunchContext& ctx) const {
  const Tensor& x = *ctx.inputs[0];
  const auto [batch, channels, inner] = SplitOf(x);
  kernels::BatchNormArgs args = {kernels::BatchNormPass::kStatistics,
                                 x.dtype(),
                                 batch,
                                 channels,
                                 inner,
                                 /*eps=*/0,
                                 ctx.output.data(),
                                 x.data(),
                                 nullptr,
                                 nullptr,
                                 nullptr};
  const bool updates = ctx.inputs.size() == 3;
  args.running_mean = updates ? ctx.inputs[1]->data() : nullptr;
  args.running_var = updates ? ctx.inputs[2]->data() : nullptr;
  args.momentum = momentum;
  return Enqueue(ctx, args);
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
  CheckInputs(name, {&x, &weight, &bias, &running_mean, &running_var}, at);
  // The running values may share memory with the others, which are read after
  // the running values are written.
  const auto kept = [&](const Tensor& y) {
    for (const Tensor* running : {&running_mean, &running_var}) {
      if (training && (IsSameView(y, *running) ||
                       OverlapOf(y, *running) != Overlap::kNone)) {
        return Clone(y, at);
      }
    }
    return Contiguous(y, at);
  };
  const Tensor dense = kept(x), w = kept(weight), b = kept(bias);
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
    CheckLike(name, "weight", w, {x.size(1)}, x);
    CheckLike(name, "bias", b, {x.size(1)}, x);
  });
  // Without values there are no statistics: the running values stay.
  training = training && x.numel() != 0;
  Tensor statistics;
  {
    // The gradient's rule includes the path through the statistics.
    const NoGradGuard guard;
    statistics = training ? Apply(BatchNormStatisticsPrimitive(momentum),
                                  {&dense, &running_mean, &running_var}, at)
                          : Stack({running_mean, running_var}, 0, at);
  }
  return Apply(BatchNormPrimitive(training, eps), {&dense, &statistics, &w, &b},
               at);
}

}  // namespace d2l
