#include <cstdint>

#include "common/ops/copy.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/primitive/launch.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/reject.h"

namespace d2l {
namespace {

void CheckSamples(const char* name, const Tensor& logits,
                  const Tensor& labels) {
  if (logits.dim() != 2 || !IsFloatingPoint(logits.dtype()) ||
      labels.shape() != Shape{logits.size(0)} ||
      labels.dtype() != DType::kInt64) {
    Reject(
        "[%s] logits of shape (n, classes), float32 or float64, and labels of "
        "shape (n), int64, wanted; got %s and %s; convert labels with To(x, "
        "DType::kInt64), change a shape with Reshape",
        name, logits, labels);
  }
  CheckContiguous(name, logits);
  CheckContiguous(name, labels);
}

const std::int64_t* LabelsOf(const Tensor& labels) {
  return static_cast<const std::int64_t*>(labels.data());
}

}  // namespace

ValueSpec CrossEntropyPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 2);
  const Tensor& logits = *inputs[0];
  CheckSamples(name(), logits, *inputs[1]);
  return {{logits.size(0)}, logits.dtype(), logits.device()};
}

std::uint64_t CrossEntropyPrimitive::Launch(const LaunchContext& ctx) const {
  const Tensor& logits = *ctx.inputs[0];
  return Enqueue(
      ctx, kernels::CrossEntropyArgs{logits.dtype(), logits.size(0),
                                     logits.size(1), ctx.output.data(),
                                     logits.data(), LabelsOf(*ctx.inputs[1])});
}

ValueSpec CrossEntropyBackwardPrimitive::Infer(Inputs inputs) const {
  CheckInputCount(name(), inputs, 3);
  const Tensor& dy = *inputs[0];
  const Tensor& logits = *inputs[1];
  CheckSamples(name(), logits, *inputs[2]);
  CheckContiguous(name(), dy);
  if (dy.shape() != Shape{logits.size(0)} || dy.dtype() != logits.dtype()) {
    Reject("[%s] a gradient for each sample of %s wanted; got %s", name(),
           logits, dy);
  }
  return {logits.shape(), logits.dtype(), logits.device()};
}

std::uint64_t CrossEntropyBackwardPrimitive::Launch(
    const LaunchContext& ctx) const {
  const Tensor& logits = *ctx.inputs[1];
  return Enqueue(ctx, kernels::CrossEntropyArgs{
                          logits.dtype(), logits.size(0), logits.size(1),
                          ctx.output.data(), logits.data(),
                          LabelsOf(*ctx.inputs[2]), ctx.inputs[0]->data()});
}

Tensor CrossEntropy(const Tensor& logits, const Tensor& labels,
                    SourceLocation at) {
  return ApplyContiguous(CrossEntropyPrimitive(), {&logits, &labels}, at);
}

}  // namespace d2l
