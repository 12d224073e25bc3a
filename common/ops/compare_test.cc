// Comparing whole tensors.

#include "common/ops/compare.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/ops/indexing.h"
#include "common/ops/read.h"
#include "common/ops/testing/testing.h"
#include "common/ops/views.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class CompareTest : public DeviceTest {};

TEST_P(CompareTest, EqualIsOfAllElements) {
  for (const DType dtype : kAllDTypes) {
    for (const Placement p : kPlacements) {
      for (const Placement q : kPlacements) {
        const std::vector<double> values = RandomValues(35, dtype);
        const Tensor x = Place(values, {5, 7}, device(), dtype, p);
        EXPECT_TRUE(Equal(x, Place(values, {5, 7}, device(), dtype, q)));
        for (const std::size_t i : {0u, 17u, 34u}) {
          std::vector<double> other = values;
          other[i] = other[i] == 1 ? 2 : 1;
          const Tensor y = Place(other, {5, 7}, device(), dtype, q);
          EXPECT_FALSE(Equal(x, y));
          EXPECT_FALSE(Equal(y, x));
          EXPECT_FALSE(AllClose(x, y));
        }
      }
    }
    const Tensor x = RandomTensor({100003}, device(), dtype);
    EXPECT_TRUE(Equal(x, x));
    Tensor y = x + 0;
    EXPECT_TRUE(Equal(x, y));
    y[100002] = Item(y[100002]) == 0 ? 1 : 0;
    EXPECT_FALSE(Equal(x, y));
  }
}

TEST_P(CompareTest, EqualOfShapesAndNothing) {
  const Tensor x = Ones({2, 3}, device());
  EXPECT_FALSE(Equal(x, Ones({3, 2}, device())));
  EXPECT_FALSE(Equal(x, Ones({6}, device())));
  EXPECT_FALSE(Equal(Ones({}, device()), Ones({1}, device())));
  EXPECT_TRUE(Equal(Ones({0, 3}, device()), Zeros({0, 3}, device())));
  EXPECT_FALSE(Equal(Ones({0, 3}, device()), Zeros({3, 0}, device())));
  EXPECT_TRUE(Equal(Ones({}, device()), Ones({}, device())));
}

TEST_P(CompareTest, EqualIsExact) {
  const Tensor nan = Full({2}, kNan, device());
  EXPECT_FALSE(Equal(nan, nan));
  const Tensor infinity = Full({2}, kInfinity, device());
  EXPECT_TRUE(Equal(infinity, infinity));
  EXPECT_TRUE(Equal(Zeros({1}, device()), -Zeros({1}, device())));
  const Tensor big =
      Full({1}, (std::int64_t{1} << 53) + 1, device(), DType::kInt64);
  EXPECT_FALSE(Equal(big, big - 1));
  EXPECT_FALSE(Equal(Full({1}, 1., device(), DType::kFloat64),
                     Full({1}, 1 + 1e-15, device(), DType::kFloat64)));
}

TEST_P(CompareTest, AllCloseWithinTheTolerance) {
  for (const DType dtype : kFloatDTypes) {
    const auto close = [&](double a, double b, const Tolerance& tolerance) {
      return AllClose(Full({3}, a, device(), dtype),
                      Full({3}, b, device(), dtype), tolerance);
    };
    EXPECT_TRUE(close(1, 1 + 0.9e-5, {}));
    EXPECT_FALSE(close(1, 1 + 1.3e-5, {}));
    EXPECT_TRUE(close(-1000, -1000.005, {}));
    EXPECT_TRUE(close(0, 0.9e-8, {}));
    EXPECT_FALSE(close(0, 1.1e-8, {}));
    EXPECT_FALSE(close(1, -1, {}));
    // The tolerance is relative to the second operand.
    EXPECT_TRUE(close(1, 2, {0.5, 0}));
    EXPECT_FALSE(close(2, 1, {0.5, 0}));
    EXPECT_TRUE(close(2, 1, {0, 1}));
    EXPECT_FALSE(close(2, 1, {0, 0.75}));
    EXPECT_TRUE(close(1, 1, {0, 0}));

    EXPECT_TRUE(close(kInfinity, kInfinity, {0, 0}));
    EXPECT_FALSE(close(kInfinity, -kInfinity, {1, 1}));
    EXPECT_FALSE(close(kInfinity, 1, {1, kInfinity}));
    EXPECT_FALSE(close(1, kInfinity, {1, 1}));
    EXPECT_FALSE(close(kNan, kNan, {}));
    EXPECT_TRUE(close(kNan, kNan, {0, 0, true}));
    EXPECT_FALSE(close(kNan, 1, {1, 1, true}));
    EXPECT_FALSE(close(1, kNan, {1, 1, true}));
  }
}

TEST_P(CompareTest, AllCloseOfIntegersViewsAndNothing) {
  const Tensor x = RandomTensor({5, 7}, device(), DType::kInt64);
  EXPECT_TRUE(AllClose(x, x + 0));
  EXPECT_FALSE(AllClose(x, x + 1, {0, 0.5}));
  EXPECT_TRUE(AllClose(x, x + 1, {0, 1}));
  EXPECT_TRUE(AllClose(T(x), T(x + 0)));
  EXPECT_TRUE(AllClose(Expand(x[{kAll, Range{0, 1}}], {5, 3}),
                       Expand(x[{kAll, Range{0, 1}}], {5, 3})));
  EXPECT_TRUE(AllClose(Ones({0}, device()), Ones({0}, device())));
}

INSTANTIATE_FOR_ALL_DEVICES(CompareTest);

}  // namespace
}  // namespace d2l
