// The primitives of convolution.h, and of its gradients, for tracing, rewriting
// and replaying programs.
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_NN_CONVOLUTION_PRIMITIVES_H_
#define D2L_COMMON_OPS_NN_CONVOLUTION_PRIMITIVES_H_

#include <cstdint>
#include <vector>

#include "common/kernels/nn_kernels.h"
#include "common/ops/nn/convolution.h"
#include "common/ops/primitive.h"
#include "common/tensor/shape.h"

namespace d2l {

// Its inputs are contiguous: x, the weight and, if there is one, the bias.
class Conv2dPrimitive final : public Cloneable<Conv2dPrimitive> {
 public:
  explicit Conv2dPrimitive(const Conv2dOptions& options) : options_(options) {}

  const char* name() const override { return "conv2d"; }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  const Conv2dOptions& options() const { return options_; }

 private:
  const Conv2dOptions options_;
};

// The gradient of x or of the weight, of this shape. Its inputs are contiguous:
// the gradient of y, and the other of the two. As a convolution is linear in
// each, the gradients of these are convolutions and such gradients again.
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
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  bool of_weight() const { return of_weight_; }
  const Conv2dOptions& options() const { return options_; }

 private:
  const bool of_weight_;
  const Conv2dOptions options_;
  const Shape shape_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_CONVOLUTION_PRIMITIVES_H_
