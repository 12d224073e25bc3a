#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/replay.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

struct ConvCase {
  Shape x, weight;
  Conv2dOptions options;
};

const std::vector<ConvCase>& ConvCases() {
  static const auto& cases =
      *new std::vector<ConvCase>{{{2, 3, 8, 6}, {4, 3, 3, 3}, {}},
                                 {{7, 1, 5, 5}, {1, 1, 5, 5}, {}},
                                 {{0, 2, 4, 4}, {3, 2, 2, 2}, {}},
                                 {{3, 2, 5, 7}, {3, 2, 1, 1}, {}},
                                 {{1, 2, 6, 9}, {2, 2, 3, 2}, {{2, 3}, {1, 2}}},
                                 {{2, 1, 3, 3}, {2, 1, 2, 4}, {1, 3}}};
  return cases;
}

// The results of a loop over all products, the terms' absolute values, and how
// often the result is read.
struct Sums {
  explicit Sums(const Tensor& like)
      : values(like.numel()), errors(like.numel()) {}
  void Add(std::int64_t i, double a, double b) {
    values[i] += a * b;
    errors[i] += std::abs(a * b);
  }
  std::vector<double> values, errors;
};

class ConvolutionTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(ConvolutionTest);

TEST_P(ConvolutionTest, AgreesWithTheSlowVersion) {
  for (const DType dtype : kFloatDTypes) {
    for (const ConvCase& one : ConvCases()) {
      SCOPED_TRACE(one.x.ToString() + one.weight.ToString());
      const auto random = [&](const Shape& shape) {
        return RandomTensor(shape, device(), dtype, Placement::kTransposed);
      };
      const Tensor x = random(one.x);
      const Tensor weight = random(one.weight);
      const Tensor bias = random({one.weight[0]});
      const Tensor y = Conv2d(x, weight, bias, one.options);
      const Tensor dy = random(y.shape());
      const Tensor images = Contiguous(x), kernels = Contiguous(weight);
      const Tensor slopes = Contiguous(dy);
      const SourceLocation at = SourceLocation::Current();
      const Tensor dx =
          Apply(Conv2dBackwardPrimitive(false, one.options, one.x),
                {&slopes, &kernels}, at);
      const Tensor dw =
          Apply(Conv2dBackwardPrimitive(true, one.options, one.weight),
                {&slopes, &images}, at);

      const std::vector<double> a = ValuesOf(x), b = ValuesOf(weight);
      const std::vector<double> c = ValuesOf(bias), d = ValuesOf(dy);
      Sums of_y(y), of_x(x), of_weight(weight);
      for (const Position& p : PositionsIn(y.shape())) {
        const std::int64_t i = NumberOf(p, y.shape());
        of_y.Add(i, c[p[1]], 1);
        for (const Position& q :
             PositionsIn({one.weight[1], one.weight[2], one.weight[3]})) {
          const std::int64_t h = p[2] * one.options.stride.height -
                                 one.options.padding.height + q[1];
          const std::int64_t w = p[3] * one.options.stride.width -
                                 one.options.padding.width + q[2];
          if (h < 0 || h >= one.x[2] || w < 0 || w >= one.x[3]) continue;
          const std::int64_t j = NumberOf({p[0], q[0], h, w}, one.x);
          const std::int64_t k = NumberOf({p[1], q[0], q[1], q[2]}, one.weight);
          of_y.Add(i, a[j], b[k]);
          of_x.Add(j, d[i], b[k]);
          of_weight.Add(k, d[i], a[j]);
        }
      }
      for (Sums* const sums : {&of_y, &of_x, &of_weight}) {
        for (double& error : sums->errors) error *= 8 * Epsilon(dtype);
      }
      EXPECT_TRUE(IsNear(y, y.shape(), dtype, of_y.values, of_y.errors));
      EXPECT_TRUE(IsNear(dx, one.x, dtype, of_x.values, of_x.errors));
      EXPECT_TRUE(
          IsNear(dw, one.weight, dtype, of_weight.values, of_weight.errors));
    }
  }
}

TEST_P(ConvolutionTest, WithoutABias) {
  const Tensor x = Place({1, 2, 3, 4}, {1, 1, 2, 2}, device());
  const Tensor weight = Place({1, -1}, {1, 1, 1, 2}, device());
  EXPECT_TRUE(
      Matches(Conv2d(x, weight), {1, 1, 2, 1}, DType::kFloat32, {-1, -1}));
}

TEST_P(ConvolutionTest, Refuses) {
  const auto zeros = [this](const Shape& shape) {
    return Zeros(shape, device());
  };
  const Tensor x = zeros({8, 1, 4, 5}), weight = zeros({20, 1, 3, 3});
  EXPECT_REFUSED(
      "[conv2d] images of shape (batch, channels, height, width) wanted; got "
      "(1, 4, 5); for one image of three dimensions: Unsqueeze(x, 0)",
      Conv2d(zeros({1, 4, 5}), weight));
  EXPECT_REFUSED(
      "[conv2d] a weight of shape (out_channels, in_channels, kernel_height, "
      "kernel_width), none of them 0, wanted; got (20, 3, 3)",
      Conv2d(x, zeros({20, 3, 3})));
  EXPECT_REFUSED(
      "[conv2d] a weight of shape (20, 3, 3, 3) wants images with 3 channels; "
      "got 1, in (8, 1, 4, 5)",
      Conv2d(x, zeros({20, 3, 3, 3})));
  EXPECT_REFUSED(
      "[conv2d] a kernel of (5, 3) does not fit into images of (4, 5) with "
      "padding (0, 2); take a smaller kernel, or more padding",
      Conv2d(x, zeros({2, 1, 5, 3}), {}, {1, {0, 2}}));
  EXPECT_REFUSED(
      "[conv2d] a bias of shape (20), a number for each output channel of the "
      "weight, wanted; got (1)",
      Conv2d(x, weight, zeros({1})));
  EXPECT_REFUSED(
      "[conv2d] a padded image of at most 268435456 elements wanted; got "
      "images of (4, 5) with padding (536870911, 536870911)",
      Conv2d(zeros({0, 1, 4, 5}), weight, {}, {1, 536870911}));
  EXPECT_REFUSED(
      "[conv2d] a kernel and a stride of at least 1 wanted; got "
      "kernel (3, 3), stride (1, 0)",
      Conv2d(x, weight, {}, {{1, 0}, 0}));
  const Tensor doubles = Zeros({20}, device(), DType::kFloat64);
  EXPECT_REFUSED("[conv2d] operands of one dtype wanted; got " + x.Describe() +
                     " and " + doubles.Describe() +
                     "; convert one of them: To(x, DType)",
                 Conv2d(x, weight, doubles));
  EXPECT_REFUSED(
      "[conv2d] an operand is an undefined tensor (a Tensor that was "
      "declared and never assigned)",
      Conv2d(x, Tensor()));
}

// Invalid arguments that a program as text could have.
TEST_P(ConvolutionTest, GradientsRefuse) {
  const Tensor dy = Zeros({2, 3, 4, 4}, device());
  const Tensor weight = Zeros({3, 1, 2, 2}, device());
  const auto make = [](const char* name, const char* stride,
                       const char* padding, const char* shape) {
    return *MakePrimitive(
        name, {{"stride", stride}, {"padding", padding}, {"shape", shape}});
  };
  const auto infer = [](const Primitive& primitive, const Tensor& a,
                        const Tensor& b) {
    return Apply(primitive, {&a, &b}, SourceLocation::Current());
  };
  const char* const kInput = "conv2d_input_gradient";
  EXPECT_EQ(infer(*make(kInput, "(1, 1)", "(0, 0)", "(2, 1, 5, 5)"), dy, weight)
                .shape(),
            Shape({2, 1, 5, 5}));
  for (const char* const shape :
       {"(2, 1, 5, 6)", "(1, 1, 5, 5)", "(2, 2, 5, 5)", "(2, 1, -5, 5)",
        "(2, 1, 4611686018427387904, 4611686018427387904)", "()"}) {
    EXPECT_THROW(infer(*make(kInput, "(1, 1)", "(0, 0)", shape), dy, weight),
                 std::invalid_argument)
        << shape;
  }
  const Tensor x = Zeros({2, 1, 5, 5}, device());
  for (const char* const shape :
       {"(3, 1, 2, 3)", "(2, 1, 2, 2)", "(3, 0, 2, 2)", "(3, 1, 0, 2)"}) {
    EXPECT_THROW(
        infer(*make("conv2d_weight_gradient", "(1, 1)", "(0, 0)", shape), dy,
              x),
        std::invalid_argument)
        << shape;
  }
  EXPECT_FALSE(MakePrimitive("conv2d", {{"stride", "(1, 1)"}}).ok());
  EXPECT_FALSE(
      MakePrimitive("conv2d", {{"stride", "(1, 1)"}, {"padding", "(1)"}}).ok());
}

}  // namespace
}  // namespace d2l
