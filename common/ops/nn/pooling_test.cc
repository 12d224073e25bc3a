#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct PoolCase {
  Shape shape;
  Size2d kernel, stride, padding;
};

const std::vector<PoolCase>& PoolCases() {
  static const auto& cases =
      *new std::vector<PoolCase>{{{2, 3, 8, 6}, 2, 2, 0},
                                 {{9, 5, 24, 24}, 2, 2, 0},
                                 {{2, 3, 9, 7}, 2, 2, 0},
                                 {{2, 3, 9, 7}, 3, 2, 1},
                                 {{3, 8, 10}, {2, 3}, 1, {1, 0}},
                                 {{1, 2, 5, 40}, {1, 2}, {3, 2}, 0},
                                 {{2, 2, 7, 70}, {3, 4}, {2, 5}, {1, 2}},
                                 {{2, 1, 6, 6}, 6, 6, 0},
                                 {{1, 1, 1, 1}, 1, 1, 0},
                                 {{0, 3, 4, 4}, 2, 2, 0},
                                 {{2, 0, 4, 4}, 2, 2, 1},
                                 {{4, 7, 33}, {5, 1}, {1, 4}, {2, 0}},
                                 {{1, 3, 4, 34}, {4, 2}, {4, 2}, 0}};
  return cases;
}

// Calls f(output, inputs' elements) for each element of the output: the inputs'
// without padding, in reading order.
template <typename F>
void ForEachWindow(const PoolCase& one, const Shape& out, F f) {
  const int rank = out.rank();
  const std::int64_t height = one.shape[rank - 2];
  const std::int64_t width = one.shape[rank - 1];
  const std::int64_t out_size = out[rank - 2] * out[rank - 1];
  for (std::int64_t at = 0; at < out.numel(); ++at) {
    const std::int64_t image = at / out_size;
    const std::int64_t top =
        at % out_size / out[rank - 1] * one.stride.height - one.padding.height;
    const std::int64_t left =
        at % out[rank - 1] * one.stride.width - one.padding.width;
    std::vector<std::int64_t> seen;
    for (std::int64_t i = top; i < top + one.kernel.height; ++i) {
      for (std::int64_t j = left; j < left + one.kernel.width; ++j) {
        if (i < 0 || i >= height || j < 0 || j >= width) continue;
        seen.push_back((image * height + i) * width + j);
      }
    }
    f(at, seen);
  }
}

std::int64_t Largest(const std::vector<double>& x,
                     const std::vector<std::int64_t>& seen) {
  std::int64_t best = seen[0];
  for (const std::int64_t i : seen) {
    if (x[i] > x[best] || std::isnan(x[i])) best = i;
  }
  return best;
}

Tensor Gradient(bool max, const PoolCase& one, const Tensor& dy,
                const Tensor& x,
                SourceLocation at = SourceLocation::Current()) {
  const Pool2dBackwardPrimitive primitive(
      {max, one.kernel, one.stride, one.padding}, one.shape);
  return max ? Apply(primitive, {&dy, &x}, at) : Apply(primitive, {&dy}, at);
}

class PoolingTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(PoolingTest);

TEST_P(PoolingTest, AgreesWithTheSlowVersion) {
  for (const DType dtype : kFloatDTypes) {
    for (const PoolCase& one : PoolCases()) {
      SCOPED_TRACE(one.shape.ToString() + ToShape(one.kernel).ToString());
      const Tensor x =
          RandomTensor(one.shape, device(), dtype, Placement::kColumns);
      const std::vector<double> values = ValuesOf(x);
      const Tensor avg = AvgPool2d(x, one.kernel, one.stride, one.padding);
      const Tensor max = MaxPool2d(x, one.kernel, one.stride, one.padding);
      ASSERT_EQ(avg.shape(), max.shape());
      const double count =
          static_cast<double>(one.kernel.height * one.kernel.width);
      std::vector<double> means, errors, maxima;
      ForEachWindow(one, avg.shape(), [&](std::int64_t, const auto& seen) {
        double sum = 0, absolute = 0;
        for (const std::int64_t i : seen) {
          sum += values[i];
          absolute += std::abs(values[i]);
        }
        means.push_back(sum / count);
        errors.push_back(8 * Epsilon(dtype) * absolute / count);
        maxima.push_back(values[Largest(values, seen)]);
      });
      EXPECT_TRUE(IsNear(avg, avg.shape(), dtype, means, errors));
      EXPECT_TRUE(Matches(max, avg.shape(), dtype, maxima));
    }
  }
}

TEST_P(PoolingTest, GradientsAgreeWithTheSlowVersion) {
  for (const DType dtype : kFloatDTypes) {
    for (const PoolCase& one : PoolCases()) {
      SCOPED_TRACE(one.shape.ToString() + ToShape(one.kernel).ToString());
      // Few different values, so that windows have equal maxima, and NaN.
      std::vector<double> values = RandomValues(one.shape.numel(), dtype);
      for (double& value : values) {
        value = value > 9 ? kNaN : std::round(value);
      }
      const Tensor x = Place(values, one.shape, device(), dtype);
      const Shape out =
          MaxPool2d(x, one.kernel, one.stride, one.padding).shape();
      const Tensor dy = RandomTensor(out, device(), dtype);
      const std::vector<double> slopes = ValuesOf(dy);
      const double count =
          static_cast<double>(one.kernel.height * one.kernel.width);
      std::vector<double> avg(values.size()), max(values.size()),
          absolute(values.size());
      ForEachWindow(one, out, [&](std::int64_t at, const auto& seen) {
        for (const std::int64_t i : seen) {
          avg[i] += slopes[at] / count;
          absolute[i] += std::abs(slopes[at]);
        }
        max[Largest(values, seen)] += slopes[at];
      });
      for (double& a : absolute) a *= 8 * Epsilon(dtype);
      EXPECT_TRUE(
          IsNear(Gradient(false, one, dy, x), one.shape, dtype, avg, absolute));
      EXPECT_TRUE(
          IsNear(Gradient(true, one, dy, x), one.shape, dtype, max, absolute));
    }
  }
}

TEST_P(PoolingTest, OfNaNAndInfinity) {
  const Tensor x = Place({1, kNaN, -kInfinity, -kInfinity,  //
                          3, 2, -kInfinity, -kInfinity},
                         {1, 2, 4}, device());
  EXPECT_TRUE(
      Matches(MaxPool2d(x, 2), {1, 1, 2}, DType::kFloat32, {kNaN, -kInfinity}));
  EXPECT_TRUE(
      Matches(AvgPool2d(x, 2), {1, 1, 2}, DType::kFloat32, {kNaN, -kInfinity}));
}

TEST_P(PoolingTest, Refuses) {
  const Tensor x = Zeros({1, 2, 4, 5}, device());
  EXPECT_REFUSED(
      "[avg_pool2d] a kernel of (5, 5) does not fit into images of (4, 5) with "
      "padding (0, 0); take a smaller kernel, or more padding",
      AvgPool2d(x, 5));
  EXPECT_REFUSED(
      "[max_pool2d] a padding of at most half the kernel wanted; got padding "
      "(2, 2), kernel (3, 3)",
      MaxPool2d(x, 3, 1, 2));
  EXPECT_REFUSED(
      "[max_pool2d] a kernel and a stride of at least 1 wanted; got kernel (2, "
      "2), stride (0, 1)",
      MaxPool2d(x, 2, Size2d(0, 1)));
  EXPECT_REFUSED("[avg_pool2d] sizes from 0 to 536870911 wanted; got (0, -1)",
                 AvgPool2d(x, 2, 2, Size2d(0, -1)));
  EXPECT_REFUSED(
      "[avg_pool2d] images of shape (batch, channels, height, width) or "
      "(channels, height, width) wanted; got (4, 5)",
      AvgPool2d(Zeros({4, 5}, device()), 2));
  EXPECT_REFUSED(
      "[max_pool2d] float32 or float64 wanted; got an int64 tensor of shape "
      "(1, 4, 4) on " +
          device().ToString() + "; convert it: To(x, DType::kFloat32)",
      MaxPool2d(Zeros({1, 4, 4}, device(), DType::kInt64), 2));
  const Tensor dy = Zeros({1, 2, 2, 3}, device());
  EXPECT_REFUSED(
      "[max_pool2d_backward] the gradient of an output of shape (1, 2, 2, 2), "
      "and an input of shape (1, 2, 4, 5) and of its dtype, wanted; got " +
          dy.Describe() + " and " + x.Describe(),
      Gradient(true, {{1, 2, 4, 5}, 2, 2, 0}, dy, x,
               SourceLocation::Current()));
}

}  // namespace
}  // namespace d2l
