// What each family of primitives costs. OpCost (primitive.h) says what counts.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/ops/nn/primitives.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"

namespace d2l {
namespace {

std::int64_t BytesOf(const Tensor& x) {
  std::int64_t bytes = static_cast<std::int64_t>(DTypeSize(x.dtype()));
  for (int i = 0; i < x.dim(); ++i) {
    if (x.size(i) == 0 || x.strides()[i] != 0) bytes *= x.size(i);
  }
  return bytes;
}

// Reads all inputs, one that is given twice once, and writes the output.
OpCost Whole(Inputs inputs, const Tensor& output, std::int64_t flop) {
  OpCost cost = {flop, BytesOf(output)};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool seen = std::any_of(
        inputs.begin(), inputs.begin() + i,
        [&](const Tensor* other) { return IsSameView(*other, *inputs[i]); });
    if (!seen) cost.bytes += BytesOf(*inputs[i]);
  }
  return cost;
}

std::int64_t Area(const Pooling& pooling) {
  return pooling.kernel.height * pooling.kernel.width;
}

// Of a convolution's output y: two for each of its elements and each element of
// a kernel.
std::int64_t ConvolutionFlop(const Tensor& y, const Shape& weight) {
  return weight[0] == 0 ? 0 : 2 * y.numel() * (weight.numel() / weight[0]);
}

}  // namespace

OpCost Primitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, 0);
}

// ---- Element by element.

OpCost UnaryPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, output.numel());
}

OpCost BinaryPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, output.numel());
}

OpCost WherePrimitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, output.numel());
}

OpCost AxpbyPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, 3 * output.numel());
}

// ---- Reductions.

OpCost ReducePrimitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, inputs[0]->numel());
}

// The largest, the difference from it, its exp, their sum, the quotient.
OpCost SoftmaxPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, 5 * output.numel());
}

// As softmax, without the quotient.
OpCost CrossEntropyPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, 4 * inputs[0]->numel());
}

// Softmax, times the gradient.
OpCost CrossEntropyBackwardPrimitive::Cost(Inputs inputs,
                                           const Tensor& output) const {
  return Whole(inputs, output, 6 * output.numel());
}

// ---- Batch normalisation.

// The sum; the difference from the mean, its square, their sum.
OpCost BatchNormStatisticsPrimitive::Cost(Inputs inputs,
                                          const Tensor& output) const {
  return Whole(inputs, output, 4 * inputs[0]->numel());
}

// (x - mean) * factor + bias.
OpCost BatchNormPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, 3 * output.numel());
}

// The sums of dy and of dy * (x - mean).
OpCost BatchNormBackwardReducePrimitive::Cost(Inputs inputs,
                                              const Tensor& output) const {
  return Whole(inputs, output, 4 * inputs[0]->numel());
}

// (x - mean) * factor + (dy * factor + offset); without sums dy * factor, and x
// is not read.
OpCost BatchNormBackwardPrimitive::Cost(Inputs inputs,
                                        const Tensor& output) const {
  if (inputs.size() == 5) return Whole(inputs, output, 5 * output.numel());
  const Tensor* const read[] = {inputs[0], inputs[2], inputs[3]};
  return Whole(read, output, output.numel());
}

// ---- Products, convolution, pooling.

OpCost MatMulPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  const Tensor& a = *inputs[0];
  return Whole(inputs, output, 2 * output.numel() * a.size(a.dim() - 1));
}

OpCost Conv2dPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  const std::int64_t bias = inputs.size() == 3 ? output.numel() : 0;
  return Whole(inputs, output,
               ConvolutionFlop(output, inputs[1]->shape()) + bias);
}

OpCost Conv2dBackwardPrimitive::Cost(Inputs inputs,
                                     const Tensor& output) const {
  const Shape& weight = of_weight ? output.shape() : inputs[1]->shape();
  return Whole(inputs, output, ConvolutionFlop(*inputs[0], weight));
}

OpCost Pool2dPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, output.numel() * Area(pooling));
}

OpCost Pool2dBackwardPrimitive::Cost(Inputs inputs,
                                     const Tensor& output) const {
  return Whole(inputs, output, inputs[0]->numel() * Area(pooling));
}

// ---- Indices: of x what they name, at most all.

OpCost IndexPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  const std::int64_t taken = std::min(BytesOf(*inputs[0]), BytesOf(output));
  return {0, BytesOf(*inputs[1]) + taken + BytesOf(output)};
}

// In place only that is read and written of x; else all is copied first.
OpCost IndexAddPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  const Tensor& source = *inputs[2];
  std::int64_t of_x = BytesOf(output);
  if (IsSameView(*inputs[0], output)) of_x = std::min(of_x, BytesOf(source));
  return {source.numel(), BytesOf(*inputs[1]) + BytesOf(source) + 2 * of_x};
}

}  // namespace d2l
