// The primitives of nn/, and of their gradients, for tracing, rewriting and
// replaying programs. Their inputs are contiguous.
//
// Immutable values; see primitives.h.

#ifndef D2L_COMMON_OPS_NN_PRIMITIVES_H_
#define D2L_COMMON_OPS_NN_PRIMITIVES_H_

#include <cstdint>

#include "common/ops/nn/convolution.h"
#include "common/ops/nn/window.h"
#include "common/ops/primitive/fields.h"
#include "common/ops/primitive/primitive.h"
#include "common/tensor/shape.h"

namespace d2l {

// ---- convolution.h

// Its inputs: x, the weight and, if there is one, the bias.
class Conv2dPrimitive final : public Cloneable<Conv2dPrimitive> {
 public:
  explicit Conv2dPrimitive(const Conv2dOptions& options) : options_(options) {}

  const char* name() const override { return "conv2d"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override;

  const Conv2dOptions& options() const { return options_; }

 private:
  Conv2dOptions options_;
};

// The gradient of x or of the weight, of this shape. Its inputs: the gradient
// of y, and the other of the two. As a convolution is linear in each, the
// gradients of these are convolutions and such gradients again.
class Conv2dGradientPrimitive final
    : public Cloneable<Conv2dGradientPrimitive> {
 public:
  // of_weight: else of x.
  Conv2dGradientPrimitive(bool of_weight, const Conv2dOptions& options,
                          const Shape& shape)
      : of_weight_(of_weight), options_(options), shape_(shape) {}

  const char* name() const override {
    return of_weight_ ? "conv2d_weight_gradient" : "conv2d_input_gradient";
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override;

  bool of_weight() const { return of_weight_; }
  const Conv2dOptions& options() const { return options_; }

 private:
  bool of_weight_;
  Conv2dOptions options_;
  Shape shape_;
};

// ---- pooling.h

// What is made of a window, and how it slides.
struct Pooling {
  bool max;  // else the mean
  Size2d kernel, stride, padding;
};

class Pool2dPrimitive final : public Cloneable<Pool2dPrimitive> {
 public:
  explicit Pool2dPrimitive(const Pooling& pooling) : pooling_(pooling) {}

  const char* name() const override {
    return pooling_.max ? "max_pool2d" : "avg_pool2d";
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override;

  const Pooling& pooling() const { return pooling_; }

 private:
  Pooling pooling_;
};

// The gradient of the forward input, of this shape. Its inputs: that of the
// output and, of a maximum, the forward input.
class Pool2dGradientPrimitive final
    : public Cloneable<Pool2dGradientPrimitive> {
 public:
  Pool2dGradientPrimitive(const Pooling& pooling, const Shape& shape)
      : pooling_(pooling), shape_(shape) {}

  const char* name() const override {
    return pooling_.max ? "max_pool2d_backward" : "avg_pool2d_backward";
  }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override;

  const Pooling& pooling() const { return pooling_; }

 private:
  Pooling pooling_;
  Shape shape_;
};

// ---- batch_norm.h: x and what is as x have the shape (batch, channels, …),
// statistics (2, channels), the others (channels).

// Of x: the means, then the variances.
class BatchNormStatisticsPrimitive final
    : public Cloneable<BatchNormStatisticsPrimitive> {
 public:
  const char* name() const override { return "batch_norm_stats"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
};

// The base of what is told whether the statistics are those of x.
class BatchNormBase : public Primitive {
 public:
  // training: they are.
  BatchNormBase(bool training, double eps) : training_(training), eps_(eps) {}

  void Visit(Fields& field) override {
    field("eps", eps_)("training", training_);
  }

  bool training() const { return training_; }
  double eps() const { return eps_; }

 protected:
  bool training_;
  double eps_;
};

// Its inputs: x, statistics, weight, bias. In training the gradient of x goes
// through the statistics as well; they are no way for gradients of their own.
class BatchNormPrimitive final
    : public Cloneable<BatchNormPrimitive, BatchNormBase> {
 public:
  using Cloneable::Cloneable;

  const char* name() const override { return "batch_norm"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
};

// The gradients of the bias and of the weight, (2, channels). Its inputs: the
// gradient of the output, x, statistics.
class BatchNormSumsPrimitive final
    : public Cloneable<BatchNormSumsPrimitive, BatchNormBase> {
 public:
  using Cloneable::Cloneable;

  const char* name() const override { return "batch_norm_backward_reduce"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
};

// Its inputs: the gradient of the output, x, statistics, weight and, if the
// statistics are those of x, the sums.
class BatchNormInputGradientPrimitive final
    : public Cloneable<BatchNormInputGradientPrimitive> {
 public:
  explicit BatchNormInputGradientPrimitive(double eps) : eps_(eps) {}

  const char* name() const override { return "batch_norm_backward_elemt"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  void Visit(Fields& field) override { field("eps", eps_); }

  double eps() const { return eps_; }

 private:
  double eps_;
};

// ---- cross_entropy.h

// Its inputs: logits, labels.
class CrossEntropyPrimitive final : public Cloneable<CrossEntropyPrimitive> {
 public:
  const char* name() const override { return "cross_entropy"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  bool MayFailLate(DType) const override { return true; }
};

// Of the logits. Its inputs: the gradient of the losses, logits, labels.
class CrossEntropyGradientPrimitive final
    : public Cloneable<CrossEntropyGradientPrimitive> {
 public:
  const char* name() const override { return "cross_entropy_backward"; }
  ValueSpec Infer(Inputs inputs) const override;
  std::uint64_t Launch(const LaunchContext& ctx) const override;
  bool MayFailLate(DType) const override { return true; }
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_PRIMITIVES_H_
