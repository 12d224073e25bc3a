#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/device/failure.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

class CrossEntropyTest : public DeviceTest {
 protected:
  Tensor Labels(const std::vector<std::int64_t>& labels) const {
    return FromVector<std::int64_t>(
        labels, {static_cast<std::int64_t>(labels.size())}, device());
  }
};
INSTANTIATE_FOR_ALL_DEVICES(CrossEntropyTest);

std::vector<std::int64_t> LabelsFor(std::int64_t samples,
                                    std::int64_t classes) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < samples; ++i) {
    labels.push_back((i * 7 + i / 3) % classes);
  }
  return labels;
}

Tensor Gradient(const Tensor& dy, const Tensor& logits, const Tensor& labels,
                SourceLocation at = SourceLocation::Current()) {
  return Apply(CrossEntropyBackwardPrimitive(), {&dy, &logits, &labels}, at);
}

TEST_P(CrossEntropyTest, AgreesWithTheSlowVersion) {
  const Shape shapes[] = {{1, 1},    {3, 2},   {256, 10}, {7, 1000},
                          {2, 5000}, {500, 3}, {0, 4}};
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(shape.ToString());
      const std::int64_t n = shape[1];
      const Tensor logits =
          RandomTensor(shape, device(), dtype, Placement::kColumns);
      const Tensor dy = RandomTensor({shape[0]}, device(), dtype);
      const std::vector<double> x = ValuesOf(logits), g = ValuesOf(dy);
      const std::vector<std::int64_t> labels = LabelsFor(shape[0], n);
      std::vector<double> losses, errors, slopes, slope_errors;
      for (std::int64_t i = 0; i < shape[0]; ++i) {
        const double* const row = x.data() + i * n;
        const long double max = *std::max_element(row, row + n);
        long double sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += std::exp(row[j] - max);
        losses.push_back(
            static_cast<double>(std::log(sum) + max - row[labels[i]]));
        errors.push_back(Epsilon(dtype) *
                         (8 + 4 * (std::abs(row[labels[i]]) +
                                   std::abs(static_cast<double>(max)))));
        for (std::int64_t j = 0; j < n; ++j) {
          const double p = static_cast<double>(std::exp(row[j] - max) / sum);
          slopes.push_back(g[i] * (p - (j == labels[i] ? 1 : 0)));
          slope_errors.push_back(
              Epsilon(dtype) * std::abs(g[i]) *
              (8 + 4 * p * (static_cast<double>(max) - row[j])));
        }
      }
      const Tensor y = Labels(labels);
      EXPECT_TRUE(
          IsNear(CrossEntropy(logits, y), {shape[0]}, dtype, losses, errors));
      EXPECT_TRUE(IsNear(Gradient(dy, Contiguous(logits), y), shape, dtype,
                         slopes, slope_errors));
    }
  }
}

TEST_P(CrossEntropyTest, OfNaNAndInfinity) {
  const double kInfinity = std::numeric_limits<double>::infinity();
  const double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Tensor logits = Place({1, kNaN, 2,        //
                               -kInfinity, 0, 0,  //
                               -kInfinity, 1, 1,  //
                               kInfinity, 0, 0},
                              {4, 3}, device());
  const std::vector<double> losses =
      ValuesOf(CrossEntropy(logits, Labels({0, 0, 1, 0})));
  EXPECT_TRUE(std::isnan(losses[0]));
  EXPECT_EQ(losses[1], kInfinity);
  EXPECT_NEAR(losses[2], std::log(2), 1e-6);
  EXPECT_TRUE(std::isnan(losses[3]));
}

TEST_P(CrossEntropyTest, ALabelThatIsNoClassFailsLate) {
  const Tensor logits = Zeros({3, 10}, device());
  for (const std::int64_t wrong : {std::int64_t{10}, std::int64_t{-1}}) {
    for (const bool gradient : {false, true}) {
      const Tensor labels = Labels({4, 9, wrong});
      const SourceLocation at = SourceLocation::Current();
      const Tensor y = gradient
                           ? Gradient(Ones({3}, device()), logits, labels, at)
                           : CrossEntropy(logits, labels, at);
      try {
        ValuesOf(y);
        FAIL() << "nothing was thrown";
      } catch (const AsyncError& error) {
        const std::string what = error.what();
        EXPECT_NE(what.find("label " + std::to_string(wrong) +
                            " of sample 2 is out of range; there are 10 "
                            "classes, from 0 on"),
                  std::string::npos)
            << what;
        EXPECT_NE(what.find(at.ToString()), std::string::npos) << what;
      }
    }
  }
}

TEST_P(CrossEntropyTest, Refuses) {
  const Tensor logits = Zeros({3, 10}, device());
  const Tensor labels = Labels({1, 2});
  EXPECT_REFUSED(
      "[cross_entropy] logits of shape (n, classes), float32 or float64, and "
      "labels of shape (n), int64, wanted; got " +
          logits.Describe() + " and " + labels.Describe() +
          "; convert labels with To(x, DType::kInt64), change a shape with "
          "Reshape",
      CrossEntropy(logits, labels));
  const Tensor dy = Ones({2}, device());
  EXPECT_REFUSED(
      "[cross_entropy_backward] a gradient for each sample of " +
          logits.Describe() + " wanted; got " + dy.Describe(),
      Gradient(dy, logits, Labels({1, 2, 3}), SourceLocation::Current()));
}

}  // namespace
}  // namespace d2l
