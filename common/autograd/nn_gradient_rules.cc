#include <cstdint>
#include <typeinfo>

#include "common/autograd/rule_helpers.h"
#include "common/ops/nn/batch_norm_primitives.h"
#include "common/ops/nn/convolution.h"
#include "common/ops/nn/convolution_primitives.h"
#include "common/ops/nn/cross_entropy_primitives.h"
#include "common/ops/nn/pooling.h"
#include "common/ops/nn/pooling_primitives.h"
#include "common/ops/ops.h"

namespace d2l {
namespace {

// ---- Convolution: x, weight, bias.

Reads Conv2dReads(const Primitive&, int input) {
  return input == 2 ? 0 : ReadsInput(1 - input);
}

Tensor Conv2dGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const Conv2dOptions& options = As<Conv2dPrimitive>(op.primitive).options();
  if (input == 2) return Sum(dy, {0, 2, 3}, /*keepdim=*/false, op.at);
  const Tensor from = Contiguous(dy, op.at);
  return Apply(Conv2dGradientPrimitive(/*of_weight=*/input == 1, options,
                                       op.inputs[input].shape),
               {&from, &op.input(1 - input)}, op.at);
}

// With g, the gradient of such a gradient, for x or the weight.
Tensor Conv2dGradientGradient(const ForwardOp& op, int input, const Tensor& g) {
  const auto& primitive = As<Conv2dGradientPrimitive>(op.primitive);
  const Tensor& other = op.input(1 - input);
  if (input == 0) {
    return primitive.of_weight()
               ? Conv2d(other, g, {}, primitive.options(), op.at)
               : Conv2d(g, other, {}, primitive.options(), op.at);
  }
  const Tensor from = Contiguous(g, op.at);
  return Apply(Conv2dGradientPrimitive(!primitive.of_weight(),
                                       primitive.options(), op.inputs[1].shape),
               {&other, &from}, op.at);
}

// ---- Pooling.

// Of a mean, none; of a maximum, in which places the values were.
Reads PoolReads(const Primitive& primitive, int) {
  return As<Pool2dPrimitive>(primitive).pooling().max ? ReadsInput(0) : 0;
}

Tensor PoolGradient(const ForwardOp& op, int, const Tensor& dy) {
  const Pooling& pooling = As<Pool2dPrimitive>(op.primitive).pooling();
  const Pool2dGradientPrimitive gradient(pooling, op.inputs[0].shape);
  const Tensor g = Contiguous(dy, op.at);
  if (!pooling.max) return Apply(gradient, {&g}, op.at);
  return Apply(gradient, {&g, &op.input(0)}, op.at);
}

// Which spreads each element of dy over a window.
Tensor AvgPoolGradientGradient(const ForwardOp& op, int, const Tensor& dy) {
  const Pooling& pooling = As<Pool2dGradientPrimitive>(op.primitive).pooling();
  return AvgPool2d(dy, pooling.kernel, pooling.stride, pooling.padding, op.at);
}

// ---- Batch normalisation: x, statistics, weight, bias.

Tensors BatchNormGradients(const ForwardOp& op, Reads wanted,
                           const Tensor& dy) {
  const auto& primitive = As<BatchNormPrimitive>(op.primitive);
  const Tensor& x = op.input(0);
  const Tensor& statistics = op.input(1);
  const Tensor& weight = op.input(2);
  const Tensor g = Contiguous(dy, op.at);
  Tensors gradients(4);
  Tensor sums;
  if (primitive.training() || (wanted & (ReadsInput(2) | ReadsInput(3))) != 0) {
    sums = Apply(BatchNormSumsPrimitive(primitive.eps()), {&g, &x, &statistics},
                 op.at);
    gradients[2] = Select(sums, 0, 1, op.at);
    gradients[3] = Select(sums, 0, 0, op.at);
  }
  if ((wanted & ReadsInput(0)) != 0) {
    const BatchNormInputGradientPrimitive gradient(primitive.eps());
    gradients[0] =
        primitive.training()
            ? Apply(gradient, {&g, &x, &statistics, &weight, &sums}, op.at)
            : Apply(gradient, {&g, &x, &statistics, &weight}, op.at);
  }
  return gradients;
}

// ---- Cross-entropy: logits, labels.

Tensor CrossEntropyGradient(const ForwardOp& op, int, const Tensor& dy) {
  const Tensor g = Contiguous(dy, op.at);
  return Apply(CrossEntropyGradientPrimitive(),
               {&g, &op.input(0), &op.input(1)}, op.at);
}

Reads CrossEntropyGradientReads(const Primitive&, int input) {
  return input == 0 ? ReadsInput(1) | ReadsInput(2)
                    : ReadsInput(0) | ReadsInput(1);
}

// Of the gradient of the losses, logits, labels: with p = softmax(logits),
// slope * (p - one_hot(labels)) for each sample.
Tensor CrossEntropyGradientGradient(const ForwardOp& op, int input,
                                    const Tensor& dy) {
  const Line at(op);
  const Tensor p = Softmax(op.input(1), 1, at);
  const Tensor mean = Sum(at(dy) * p, 1, /*keepdim=*/true, at);
  if (input == 0) {
    const Tensor labels = Unsqueeze(op.input(2), 1, at);
    return Squeeze(at(mean) - Gather(dy, 1, labels, at), 1, at);
  }
  return at(at(Unsqueeze(op.input(0), 1, at)) * p) * (at(dy) - mean);
}

}  // namespace

void AddNnGradientRules(GradientRules& rules) {
  rules[&typeid(Conv2dPrimitive)] = {Conv2dReads, Conv2dGradient};
  rules[&typeid(Conv2dGradientPrimitive)] = {Conv2dReads,
                                             Conv2dGradientGradient};
  rules[&typeid(Pool2dPrimitive)] = {PoolReads, PoolGradient};
  rules[&typeid(Pool2dGradientPrimitive)] = {Always<0>,
                                             AvgPoolGradientGradient};
  rules[&typeid(BatchNormPrimitive)] = {
      Always<ReadsInput(0) | ReadsInput(1) | ReadsInput(2)>, nullptr,
      BatchNormGradients};
  rules[&typeid(CrossEntropyPrimitive)] = {
      Always<ReadsInput(0) | ReadsInput(1)>, CrossEntropyGradient};
  rules[&typeid(CrossEntropyGradientPrimitive)] = {
      CrossEntropyGradientReads, CrossEntropyGradientGradient};
}

}  // namespace d2l
