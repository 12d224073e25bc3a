// The cost of each family of primitives. OpCost (primitive.h) says what counts.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/kernels/op_tables.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"

namespace d2l {
namespace {

using kernels::kExpFlop;
using kernels::PolynomialFlop;

std::int64_t BytesOf(const Tensor& x) {
  std::int64_t bytes = static_cast<std::int64_t>(DTypeSize(x.dtype()));
  for (int i = 0; i < x.dim(); ++i) {
    if (x.size(i) == 0 || x.strides()[i] != 0) bytes *= x.size(i);
  }
  return bytes;
}

// Reads all inputs (once if given twice), and writes the output.
OpCost Whole(Inputs inputs, const Tensor& output, std::int64_t flop) {
  const std::int64_t written = BytesOf(output);
  OpCost cost = {flop, written, written};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool seen = std::any_of(
        inputs.begin(), inputs.begin() + i,
        [&](const Tensor* other) { return IsSameView(*other, *inputs[i]); });
    if (!seen) cost.bytes += BytesOf(*inputs[i]);
    if (IsSameView(*inputs[i], output)) cost.written = 0;
  }
  return cost;
}

// Philox's four words are of nineteen products of 32 by 32 bits: two in each of
// ten rounds, one in the first, as the other is of zero. Each is as wide as two
// lanes, in which a multiplication and an addition could be done: four. What
// else is done can go on beside them.
constexpr std::int64_t kPhiloxWord = 19 * 4 / 4;

// Box and Muller's two normals of two words: the uniforms 3, the logarithm, the
// root, sine and cosine of the same square, two products.
constexpr std::int64_t kTwoNormals = 3 + (1 + PolynomialFlop(10) + 3) + 1 +
                                     (1 + PolynomialFlop(5) + 1) +
                                     (PolynomialFlop(5) + 3) + 2;

// Of a convolution with the output y, or one of its gradients, which do the
// same multiplications and additions: two for each element of y and each of a
// kernel. F(4x4, 3x3) takes 36 of either for the 4 x 4 outputs of a tile, the
// last tiles being whole.
OpCost Convolution(Inputs inputs, const Tensor& output, const Tensor& y,
                   const Shape& weight, const Conv2dOptions& options) {
  const std::int64_t flop =
      weight[0] == 0 ? 0 : 2 * y.numel() * (weight.numel() / weight[0]);
  OpCost cost = Whole(inputs, output, flop);
  if (weight[2] == 3 && weight[3] == 3 && options.stride.height == 1 &&
      options.stride.width == 1) {
    const std::int64_t tiles = (y.size(2) + 3) / 4 * ((y.size(3) + 3) / 4);
    const std::int64_t least =
        2 * 36 * tiles * y.size(0) * y.size(1) * weight[1];
    cost.avoidable_flop = std::max<std::int64_t>(0, flop - least);
  }
  return cost;
}

}  // namespace

OpCost Primitive::Cost(Inputs inputs, const Tensor& output) const {
  return Whole(inputs, output, 0);
}

// Primitives that read and write all: their flop, from the number of elements
// of the output, out, and of the first input, n.
#define D2L_COST(Type, flop)                                                 \
  OpCost Type::Cost(Inputs inputs, const Tensor& output) const {             \
    [[maybe_unused]] const auto out = output.numel();                        \
    [[maybe_unused]] const auto n = inputs.empty() ? 0 : inputs[0]->numel(); \
    return Whole(inputs, output, flop);                                      \
  }

D2L_COST(UnaryPrimitive, kernels::OpFlop(op) * out)
D2L_COST(BinaryPrimitive, kernels::OpFlop(op) * out)
D2L_COST(WherePrimitive, out)
D2L_COST(AxpbyPrimitive, 3 * out)
D2L_COST(ReducePrimitive, n)
// The largest, the difference from it, its exp, their sum, the quotient.
D2L_COST(SoftmaxPrimitive, (kExpFlop + 4) * out)
// As softmax, without the quotient; softmax, times the gradient.
D2L_COST(CrossEntropyPrimitive, (kExpFlop + 3) * n)
D2L_COST(CrossEntropyBackwardPrimitive, (kExpFlop + 5) * out)
// (x - mean) * factor + bias.
D2L_COST(BatchNormPrimitive, 3 * out)
// The sums of dy and of dy * (x - mean).
D2L_COST(BatchNormBackwardReducePrimitive, 4 * n)
D2L_COST(MatMulPrimitive, 2 * out * inputs[0]->size(inputs[0]->dim() - 1))
D2L_COST(Pool2dPrimitive, (pooling.kernel.height * pooling.kernel.width) * out)
D2L_COST(Pool2dBackwardPrimitive,
         (pooling.kernel.height * pooling.kernel.width) * n)
// A word for each number, or more; uniforms and integers are scaled.
D2L_COST(RandomPrimitive, op == kernels::RandomOp::kNormal
                              ? (2 * kPhiloxWord + kTwoNormals) * out / 2
                              : (kPhiloxWord + 1) * out)

#undef D2L_COST

OpCost Conv2dPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  OpCost cost =
      Convolution(inputs, output, output, inputs[1]->shape(), options);
  if (inputs.size() == 3) cost.flop += output.numel();  // the bias
  return cost;
}

OpCost Conv2dBackwardPrimitive::Cost(Inputs inputs,
                                     const Tensor& output) const {
  return Convolution(inputs, output, *inputs[0],
                     of_weight ? output.shape() : inputs[1]->shape(), options);
}

// The sum; the difference from the mean, its square, their sum. The running
// values take two products and a sum each, and are written, too.
OpCost BatchNormStatisticsPrimitive::Cost(Inputs inputs,
                                          const Tensor& output) const {
  OpCost cost = Whole(inputs, output, 4 * inputs[0]->numel());
  for (const Tensor* running : inputs.subspan(1)) {
    cost.bytes += BytesOf(*running);
    cost.flop += 3 * running->numel();
  }
  return cost;
}

// (x - mean) * factor + (dy * factor + offset); without sums dy * factor, and x
// is not read.
OpCost BatchNormBackwardPrimitive::Cost(Inputs inputs,
                                        const Tensor& output) const {
  if (inputs.size() == 5) return Whole(inputs, output, 5 * output.numel());
  const Tensor* const read[] = {inputs[0], inputs[2], inputs[3]};
  return Whole(read, output, output.numel());
}

// ---- Indices: only the elements of x that they name, at most all.

OpCost IndexPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  const std::int64_t taken = std::min(BytesOf(*inputs[0]), BytesOf(output));
  const std::int64_t written = BytesOf(output);
  return {0, BytesOf(*inputs[1]) + taken + written, written};
}

// In place only these are read and written; else all of x is copied first.
OpCost IndexAddPrimitive::Cost(Inputs inputs, const Tensor& output) const {
  const Tensor& source = *inputs[2];
  std::int64_t of_x = BytesOf(output);
  const bool in_place = IsSameView(*inputs[0], output);
  if (in_place) of_x = std::min(of_x, BytesOf(source));
  return {source.numel(), BytesOf(*inputs[1]) + BytesOf(source) + 2 * of_x,
          in_place ? 0 : of_x};
}

}  // namespace d2l
