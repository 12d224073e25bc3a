#include <cstdint>
#include <typeinfo>

#include "common/autograd/rule_helpers.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/ops.h"

namespace d2l {
namespace {

// ---- Convolution: x, weight, bias.

Reads Conv2dReads(const Primitive&, int input) {
  return input == 2 ? 0 : ReadsInput(1 - input);
}

Tensor Conv2dGradient(const ForwardOp& op, int input, const Tensor& dy) {
  const Conv2dOptions& options = As<Conv2dPrimitive>(op.primitive).options;
  if (input == 2) return Sum(dy, {0, 2, 3}, /*keepdim=*/false, op.at);
  const Tensor from = Contiguous(dy, op.at);
  return Apply(Conv2dBackwardPrimitive(/*of_weight=*/input == 1, options,
                                       op.inputs[input].shape),
               {&from, &op.input(1 - input)}, op.at);
}

// g: the gradient of such a gradient, for x or the weight.
Tensor Conv2dBackwardGradient(const ForwardOp& op, int input, const Tensor& g) {
  const auto& primitive = As<Conv2dBackwardPrimitive>(op.primitive);
  const Tensor& other = op.input(1 - input);
  if (input == 0) {
    return primitive.of_weight ? Conv2d(other, g, {}, primitive.options, op.at)
                               : Conv2d(g, other, {}, primitive.options, op.at);
  }
  const Tensor from = Contiguous(g, op.at);
  return Apply(Conv2dBackwardPrimitive(!primitive.of_weight, primitive.options,
                                       op.inputs[1].shape),
               {&other, &from}, op.at);
}

// ---- Pooling.

// A mean reads nothing; a maximum reads where its values were.
Reads PoolReads(const Primitive& primitive, int) {
  return As<Pool2dPrimitive>(primitive).pooling.max ? ReadsInput(0) : 0;
}

Tensor PoolGradient(const ForwardOp& op, int, const Tensor& dy) {
  const Pooling& pooling = As<Pool2dPrimitive>(op.primitive).pooling;
  const Pool2dBackwardPrimitive gradient(pooling, op.inputs[0].shape);
  const Tensor g = Contiguous(dy, op.at);
  if (!pooling.max) return Apply(gradient, {&g}, op.at);
  return Apply(gradient, {&g, &op.input(0)}, op.at);
}

// The elements of g where x has the largest of each window, `out` of them:
// searched for as MaxPool2d does, one place of the windows after the other.
Tensor AtLargest(const Pooling& pooling, const Tensor& x, const Tensor& g,
                 const Shape& out, Line at) {
  const int vertical = x.dim() - 2, horizontal = x.dim() - 1;
  const Size2d &padding = pooling.padding, &stride = pooling.stride;
  const auto padded = [&](const Tensor& t) {
    Shape shape = t.shape();
    shape[vertical] += 2 * padding.height;
    Tensor y = PutInZeros(t, shape, vertical, padding.height, 1, at);
    shape[horizontal] += 2 * padding.width;
    return PutInZeros(y, shape, horizontal, padding.width, 1, at);
  };
  const Tensor values = padded(x), gradients = padded(g);
  const Tensor inside = padded(Ones(x.shape(), x.device(), DType::kUInt8, at));
  Tensor largest = Zeros(out, x.device(), x.dtype(), at), picked = largest;
  Tensor found = Zeros(out, x.device(), DType::kUInt8, at);
  for (std::int64_t i = 0; i < pooling.kernel.height; ++i) {
    for (std::int64_t j = 0; j < pooling.kernel.width; ++j) {
      const auto place = [&](const Tensor& t) {
        const std::int64_t rows = (out[vertical] - 1) * stride.height + 1;
        const std::int64_t columns = (out[horizontal] - 1) * stride.width + 1;
        return Slice(Slice(t, vertical, i, i + rows, stride.height, at),
                     horizontal, j, j + columns, stride.width, at);
      };
      const Tensor value = place(values), is_inside = place(inside);
      const Tensor beats =
          at(at(at(value) > largest) + (at(value) != value)) + (at(found) == 0);
      const Tensor taken = at(is_inside) * beats;
      largest = Where(taken, value, largest, at);
      picked = Where(taken, place(gradients), picked, at);
      found = Maximum(at(found), is_inside);
    }
  }
  return picked;
}

Reads PoolBackwardReads(const Primitive& primitive, int input) {
  const bool max = As<Pool2dBackwardPrimitive>(primitive).pooling.max;
  return max && input == 0 ? ReadsInput(1) : 0;
}

// A mean's backward spreads each element of dy over a window. A maximum's
// brings it to one place, which small changes of the forward input do not move.
Tensor PoolBackwardGradient(const ForwardOp& op, int input, const Tensor& g) {
  const Pooling& pooling = As<Pool2dBackwardPrimitive>(op.primitive).pooling;
  if (input == 1) return {};
  if (pooling.max) {
    return AtLargest(pooling, op.input(1), g, op.inputs[0].shape, Line(op));
  }
  return AvgPool2d(g, pooling.kernel, pooling.stride, pooling.padding, op.at);
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
  if (primitive.training || (wanted & (ReadsInput(2) | ReadsInput(3))) != 0) {
    sums = Apply(
        BatchNormBackwardReducePrimitive(primitive.training, primitive.eps),
        {&g, &x, &statistics}, op.at);
    gradients[2] = Select(sums, 0, 1, op.at);
    gradients[3] = Select(sums, 0, 0, op.at);
  }
  if ((wanted & ReadsInput(0)) != 0) {
    const BatchNormBackwardPrimitive gradient(primitive.eps);
    gradients[0] =
        primitive.training
            ? Apply(gradient, {&g, &x, &statistics, &weight, &sums}, op.at)
            : Apply(gradient, {&g, &x, &statistics, &weight}, op.at);
  }
  return gradients;
}

// x without its mean, in units of its standard deviation, as batch
// normalisation computes it; in training from x alone, so that gradients of any
// order go through its statistics.
struct Normalized {
  Normalized(const Tensor& x, const Tensor& statistics, bool training,
             double eps, Line at)
      : at(at) {
    for (int i = 0; i < x.dim(); ++i) {
      per_channel.push_back(i == 1 ? x.size(1) : 1);
      if (i != 1) dims.Add(i);
    }
    const Tensor mean = training ? Mean(x) : Row(statistics, 0);
    const Tensor centered = at(x) - mean;
    const Tensor variance =
        training ? Mean(Square(centered, at)) : Row(statistics, 1);
    slope = at(1) / at(Sqrt(at(variance) + eps, at));
    x_hat = at(centered) * slope;
  }

  // Row i of `rows`, which have one number for each channel.
  Tensor Row(const Tensor& rows, int i) const {
    return Reshape(Select(rows, 0, i, at), per_channel, at);
  }
  Tensor Mean(const Tensor& t) const { return d2l::Mean(t, dims, true, at); }
  Tensor Sum(const Tensor& t) const { return d2l::Sum(t, dims, true, at); }
  // In training: the gradient of x, from that of x_hat.
  Tensor OfX(const Tensor& h) const {
    const Tensor along = at(x_hat) * Mean(at(h) * x_hat);
    return at(slope) * (at(at(h) - Mean(h)) - along);
  }

  Line at;
  Dims dims;
  Shape per_channel;
  Tensor slope, x_hat;
};

// For the sums of dy and of dy * x_hat; the inputs are dy, x, statistics.
Tensors BatchNormBackwardReduceGradients(const ForwardOp& op, Reads wanted,
                                         const Tensor& g) {
  const auto& primitive = As<BatchNormBackwardReducePrimitive>(op.primitive);
  const Line at(op);
  const Normalized n(op.input(1), op.input(2), primitive.training,
                     primitive.eps, at);
  const Tensor of_dy = n.Row(g, 0);
  const Tensor of_product = n.Row(g, 1);
  Tensors gradients(3);
  gradients[0] = at(of_dy) + at(of_product) * n.x_hat;
  if ((wanted & ReadsInput(1)) != 0) {
    const Tensor h = at(of_product) * op.input(0);
    gradients[1] = primitive.training ? n.OfX(h) : at(h) * n.slope;
  }
  return gradients;
}

// For weight * slope * (dy - (sums[0] + x_hat * sums[1]) / count), without the
// sums unless in training; the inputs are dy, x, statistics, weight, sums.
Tensors BatchNormBackwardGradients(const ForwardOp& op, Reads wanted,
                                   const Tensor& g) {
  const auto& primitive = As<BatchNormBackwardPrimitive>(op.primitive);
  const Line at(op);
  const bool training = op.inputs.size() == 5;
  const Tensor& x = op.input(1);
  const Normalized n(x, op.input(2), training, primitive.eps, at);
  const Tensor weight = Reshape(op.input(3), n.per_channel, at);
  const double count =
      static_cast<double>(x.numel()) / static_cast<double>(x.size(1));
  Tensor inner = op.input(0), slope_of_x_hat;
  if (training) {
    const Tensor means = at(op.input(4)) / count;
    slope_of_x_hat = -at(n.Row(means, 1));
    inner = at(at(inner) - n.Row(means, 0)) + at(n.x_hat) * slope_of_x_hat;
  }
  const Tensor of_inner = at(g) * (at(weight) * n.slope);
  const Tensor of_product = n.Sum(at(g) * inner);  // of weight * slope
  Tensors gradients(op.inputs.size());
  gradients[0] = of_inner;
  gradients[3] = Reshape(at(of_product) * n.slope, {x.size(1)}, at);
  if (!training) return gradients;
  const Tensor sums[] = {n.Sum(of_inner), n.Sum(at(of_inner) * n.x_hat)};
  gradients[4] = Reshape(at(Stack(sums, 0, at)) / -count, {2, x.size(1)}, at);
  if ((wanted & ReadsInput(1)) != 0) {
    // The slope falls as the variance grows.
    const Tensor of_slope = at(of_product) * weight;
    const Tensor fall = at(at(n.slope) * n.slope) * (at(of_slope) / count);
    gradients[1] =
        at(n.OfX(at(of_inner) * slope_of_x_hat)) - at(n.x_hat) * fall;
  }
  return gradients;
}

// ---- Cross-entropy: logits, labels.

Tensor CrossEntropyGradient(const ForwardOp& op, int, const Tensor& dy) {
  const Tensor g = Contiguous(dy, op.at);
  return Apply(CrossEntropyBackwardPrimitive(),
               {&g, &op.input(0), &op.input(1)}, op.at);
}

Reads CrossEntropyBackwardReads(const Primitive&, int input) {
  return input == 0 ? ReadsInput(1) | ReadsInput(2)
                    : ReadsInput(0) | ReadsInput(1);
}

// For slope * (p - one_hot(labels)) for each sample, with p = softmax(logits);
// the inputs are slope (the gradient of the losses), logits, labels.
Tensor CrossEntropyBackwardGradient(const ForwardOp& op, int input,
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
  constexpr Reads kFirst2 = ReadsInput(0) | ReadsInput(1);
  constexpr Reads kFirst3 = kFirst2 | ReadsInput(2);
  constexpr Reads kFirst5 = kFirst3 | ReadsInput(3) | ReadsInput(4);
  rules.insert({
      {&typeid(Conv2dPrimitive), {Conv2dReads, Conv2dGradient}},
      {&typeid(Conv2dBackwardPrimitive), {Conv2dReads, Conv2dBackwardGradient}},
      {&typeid(Pool2dPrimitive), {PoolReads, PoolGradient}},
      {&typeid(Pool2dBackwardPrimitive),
       {PoolBackwardReads, PoolBackwardGradient}},
      {&typeid(BatchNormPrimitive),
       {Always<kFirst3>, nullptr, BatchNormGradients}},
      {&typeid(BatchNormBackwardReducePrimitive),
       {Always<kFirst3>, nullptr, BatchNormBackwardReduceGradients}},
      {&typeid(BatchNormBackwardPrimitive),
       {Always<kFirst5>, nullptr, BatchNormBackwardGradients}},
      {&typeid(CrossEntropyPrimitive), {Always<kFirst2>, CrossEntropyGradient}},
      {&typeid(CrossEntropyBackwardPrimitive),
       {CrossEntropyBackwardReads, CrossEntropyBackwardGradient}},
  });
}

}  // namespace d2l
