// The primitives of nn/, and of their gradients, for tracing, rewriting and
// replaying programs. Their inputs are contiguous.
//
// Immutable values; see primitives.h.

#ifndef D2L_COMMON_OPS_NN_PRIMITIVES_H_
#define D2L_COMMON_OPS_NN_PRIMITIVES_H_

#include <cstdint>

#include "common/kernels/kernels.h"
#include "common/ops/nn/functional.h"
#include "common/ops/primitive/fields.h"
#include "common/ops/primitive/primitive.h"
#include "common/tensor/shape.h"

namespace d2l {

// ---- Windows over images, for convolution and pooling.

inline Shape ToShape(Size2d size) { return {size.height, size.width}; }
// As text it is a shape: "(2, 3)".
void VisitSize(Fields& field, const char* name, Size2d& size);

// A window over images whose last two dimensions are height and width. Throws
// std::invalid_argument, naming the operation, if the window is empty or larger
// than the padded image.
kernels::Window2d MakeWindow(const char* operation, const Shape& images,
                             Size2d kernel, Size2d stride, Size2d padding);

// ---- Convolution.

// The inputs are x, the weight and, if there is one, the bias.
struct Conv2dPrimitive final : Cloneable<Conv2dPrimitive> {
  explicit Conv2dPrimitive(const Conv2dOptions& options) : options(options) {}

  const char* name() const override { return "conv2d"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  void Visit(Fields& field) override;

  Conv2dOptions options;
};

// The gradient of x or of the weight, of this shape. Its inputs: the gradient
// of y, and the other of the two. As a convolution is linear in each, the
// gradients of these are convolutions and such gradients again.
struct Conv2dBackwardPrimitive final : Cloneable<Conv2dBackwardPrimitive> {
  // of_weight: the gradient of the weight; otherwise that of x.
  Conv2dBackwardPrimitive(bool of_weight, const Conv2dOptions& options,
                          const Shape& shape)
      : of_weight(of_weight), options(options), shape(shape) {}

  const char* name() const override {
    return of_weight ? "conv2d_weight_gradient" : "conv2d_input_gradient";
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  void Visit(Fields& field) override;

  bool of_weight;
  Conv2dOptions options;
  Shape shape;
};

// ---- Pooling.

// What is computed from a window, and how it slides.
struct Pooling {
  bool max;  // else the mean
  Size2d kernel, stride, padding;
};

struct Pool2dPrimitive final : Cloneable<Pool2dPrimitive> {
  explicit Pool2dPrimitive(const Pooling& pooling) : pooling(pooling) {}

  const char* name() const override {
    return pooling.max ? "max_pool2d" : "avg_pool2d";
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  void Visit(Fields& field) override;

  Pooling pooling;
};

// The gradient of the forward input, of this shape. Its inputs: the gradient of
// the output and, for a maximum, the forward input.
struct Pool2dBackwardPrimitive final : Cloneable<Pool2dBackwardPrimitive> {
  Pool2dBackwardPrimitive(const Pooling& pooling, const Shape& shape)
      : pooling(pooling), shape(shape) {}

  const char* name() const override {
    return pooling.max ? "max_pool2d_backward" : "avg_pool2d_backward";
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  void Visit(Fields& field) override;

  Pooling pooling;
  Shape shape;
};

// ---- Batch normalisation: x and tensors like x have the shape (batch,
// channels, …), statistics (2, channels), the others (channels).

// The means, then the variances, of x. The inputs are x and, unless there are
// none, the running mean and variance, which it updates.
struct BatchNormStatisticsPrimitive final
    : Cloneable<BatchNormStatisticsPrimitive> {
  explicit BatchNormStatisticsPrimitive(double momentum = 0)
      : momentum(momentum) {}

  const char* name() const override { return "batch_norm_stats"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  std::size_t first_written_input() const override { return 1; }
  void Visit(Fields& field) override {
    if (field.Has("momentum", momentum != 0)) field("momentum", momentum);
  }

  double momentum;
};

// The base of primitives for both training and inference.
struct BatchNormBase : Primitive {
  // training: the statistics are those of x.
  BatchNormBase(bool training, double eps) : training(training), eps(eps) {}

  void Visit(Fields& field) override {
    field("eps", eps)("training", training);
  }

  bool training;
  double eps;
};

// The inputs are x, statistics, weight and bias. In training the gradient of x
// includes the path through the statistics, which get no gradient of their own.
struct BatchNormPrimitive final : Cloneable<BatchNormPrimitive, BatchNormBase> {
  using Cloneable::Cloneable;

  const char* name() const override { return "batch_norm"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
};

// The gradients of the bias and of the weight, (2, channels). Its inputs: the
// gradient of the output, x, statistics.
struct BatchNormBackwardReducePrimitive final
    : Cloneable<BatchNormBackwardReducePrimitive, BatchNormBase> {
  using Cloneable::Cloneable;

  const char* name() const override { return "batch_norm_backward_reduce"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
};

// The inputs are the gradient of the output, x, statistics, weight and, if the
// statistics are those of x, the sums.
struct BatchNormBackwardPrimitive final
    : Cloneable<BatchNormBackwardPrimitive> {
  explicit BatchNormBackwardPrimitive(double eps) : eps(eps) {}

  const char* name() const override { return "batch_norm_backward_elemt"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  void Visit(Fields& field) override { field("eps", eps); }

  double eps;
};

// ---- Cross-entropy.

// The inputs are the logits and the labels.
struct CrossEntropyPrimitive final : Cloneable<CrossEntropyPrimitive> {
  const char* name() const override { return "cross_entropy"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  bool MayFailLate(DType) const override { return true; }
};

// The gradient of the logits. Its inputs: that of the losses, logits, labels.
struct CrossEntropyBackwardPrimitive final
    : Cloneable<CrossEntropyBackwardPrimitive> {
  const char* name() const override { return "cross_entropy_backward"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  OpCost Cost(Inputs inputs, const Tensor& output) const override;
  bool MayFailLate(DType) const override { return true; }
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_PRIMITIVES_H_
