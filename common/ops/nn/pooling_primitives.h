// The primitives of pooling.h, and of its gradients, for tracing, rewriting and
// replaying programs.
//
// Immutable values; see primitive.h.

#ifndef D2L_COMMON_OPS_NN_POOLING_PRIMITIVES_H_
#define D2L_COMMON_OPS_NN_POOLING_PRIMITIVES_H_

#include <cstdint>
#include <vector>

#include "common/ops/nn/window.h"
#include "common/ops/primitive.h"
#include "common/tensor/shape.h"

namespace d2l {

// What is made of a window, and how it slides.
struct Pooling {
  bool max;  // else the mean
  Size2d kernel, stride, padding;
};

// Its input is contiguous.
class Pool2dPrimitive final : public Cloneable<Pool2dPrimitive> {
 public:
  explicit Pool2dPrimitive(const Pooling& pooling) : pooling_(pooling) {}

  const char* name() const override {
    return pooling_.max ? "max_pool2d" : "avg_pool2d";
  }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  const Pooling& pooling() const { return pooling_; }

 private:
  const Pooling pooling_;
};

// The gradient of the forward input, of this shape. Its inputs are contiguous:
// that of the output and, of a maximum, the forward input.
class Pool2dGradientPrimitive final
    : public Cloneable<Pool2dGradientPrimitive> {
 public:
  Pool2dGradientPrimitive(const Pooling& pooling, const Shape& shape)
      : pooling_(pooling), shape_(shape) {}

  const char* name() const override {
    return pooling_.max ? "max_pool2d_backward" : "avg_pool2d_backward";
  }
  ValueSpec Infer(Inputs inputs, int) const override;
  std::uint64_t Launch(Stream& stream, const OpLabel& label, Inputs inputs,
                       Outputs outputs) const override;
  std::vector<Attribute> attributes() const override;

  const Pooling& pooling() const { return pooling_; }

 private:
  const Pooling pooling_;
  const Shape shape_;
};

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_POOLING_PRIMITIVES_H_
