// Matrix products against the triple loop.

#include "common/ops/matmul.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/ops/creation.h"
#include "common/ops/read.h"
#include "common/ops/testing/testing.h"
#include "common/ops/views.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;

Shape Batch(const Shape& shape) {
  return Shape(absl::MakeConstSpan(shape.data(), shape.size() - 2));
}

// c is right if each element is within the rounding error that some order of
// the additions can have.
void CheckMatMul(const Tensor& a, const Tensor& b, const Tensor& c) {
  // As matrices: a vector on the left is a row, on the right a column.
  Shape in_a = a.shape(), in_b = b.shape();
  if (a.dim() == 1) in_a = {1, a.size(0)};
  if (b.dim() == 1) in_b = {b.size(0), 1};
  const std::int64_t n = in_a[in_a.rank() - 2], k = in_a[in_a.rank() - 1],
                     m = in_b[in_b.rank() - 1];
  const Shape batch = BroadcastShapes("test", Batch(in_a), Batch(in_b));
  std::vector<std::int64_t> sizes(batch.begin(), batch.end());
  if (a.dim() > 1) sizes.push_back(n);
  if (b.dim() > 1) sizes.push_back(m);

  // The number of each matrix, so that broadcasting picks matrices.
  const auto numbers = [](std::int64_t count) {
    std::vector<double> result(count);
    for (std::int64_t i = 0; i < count; ++i) result[i] = i;
    return result;
  };
  const std::vector<double> matrix_a = numbers(Batch(in_a).numel());
  const std::vector<double> matrix_b = numbers(Batch(in_b).numel());
  const std::vector<double> x = ValuesOf(a), y = ValuesOf(b);
  std::vector<double> expected, errors;
  for (std::int64_t i = 0; i < batch.numel(); ++i) {
    const auto in_left =
        static_cast<std::int64_t>(BroadcastAt(matrix_a, Batch(in_a), batch, i));
    const auto in_right =
        static_cast<std::int64_t>(BroadcastAt(matrix_b, Batch(in_b), batch, i));
    const double* p = x.data() + n * k * in_left;
    const double* q = y.data() + k * m * in_right;
    for (std::int64_t row = 0; row < n; ++row) {
      for (std::int64_t column = 0; column < m; ++column) {
        double sum = 0, size = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          const double term = p[row * k + l] * q[l * m + column];
          sum += term;
          size += std::fabs(term);
        }
        expected.push_back(sum);
        errors.push_back((k + 1) * Epsilon(a.dtype()) * size);
      }
    }
  }
  ASSERT_TRUE(IsNear(c, Shape(sizes), a.dtype(), expected, errors))
      << a.shape() << " with strides " << a.strides() << " @ " << b.shape()
      << " with strides " << b.strides();
  EXPECT_EQ(c.device(), a.device());
  EXPECT_TRUE(c.is_contiguous());
}

void CheckMatMul(const Tensor& a, const Tensor& b) {
  CheckMatMul(a, b, MatMul(a, b));
}

class MatMulTest : public DeviceTest {
 protected:
  Tensor Random(const Shape& shape, DType dtype = DType::kFloat32,
                Placement placement = Placement::kContiguous) const {
    return RandomTensor(shape, device(), dtype, placement);
  }
};

TEST_P(MatMulTest, Matrices) {
  for (const DType dtype : kFloatDTypes) {
    for (const std::int64_t n : {1, 2, 5, 17}) {
      for (const std::int64_t k : {1, 3, 8, 33}) {
        for (const std::int64_t m : {1, 4, 7, 16, 35}) {
          CheckMatMul(Random({n, k}, dtype), Random({k, m}, dtype));
        }
      }
    }
  }
}

TEST_P(MatMulTest, LargeMatrices) {
  for (const DType dtype : kFloatDTypes) {
    CheckMatMul(Random({331, 317}, dtype), Random({317, 129}, dtype));
    CheckMatMul(Random({7, 1003}, dtype), Random({1003, 101}, dtype));
    CheckMatMul(Random({257, 3}, dtype), Random({3, 401}, dtype));
  }
  CheckMatMul(Random({1, 100003}), Random({100003, 1}));
  CheckMatMul(Random({1003}), Random({1003, 101}));
  CheckMatMul(Random({503, 207}), Random({207}));
}

TEST_P(MatMulTest, OperandsLieInMemoryInAnyWay) {
  for (const DType dtype : kFloatDTypes) {
    for (const Placement p : kPlacements) {
      for (const Placement q : kPlacements) {
        SCOPED_TRACE(PlacementName(p));
        CheckMatMul(Random({6, 9}, dtype, p), Random({9, 5}, dtype, q));
        CheckMatMul(Random({1, 9}, dtype, p), Random({9, 1}, dtype, q));
        CheckMatMul(Random({6, 1}, dtype, p), Random({1, 5}, dtype, q));
        CheckMatMul(Random({9}, dtype, p), Random({9, 5}, dtype, q));
        CheckMatMul(Random({6, 9}, dtype, p), Random({9}, dtype, q));
        CheckMatMul(Random({9}, dtype, p), Random({9}, dtype, q));
        CheckMatMul(Random({3, 6, 9}, dtype, p), Random({3, 9, 5}, dtype, q));
        CheckMatMul(Random({3, 6, 9}, dtype, p), Random({9, 5}, dtype, q));
        CheckMatMul(Random({6, 9}, dtype, p), Random({3, 9, 5}, dtype, q));
      }
    }
    const Tensor x = Random({7, 5}, dtype);
    CheckMatMul(x, T(x));
    CheckMatMul(T(x), x);
    CheckMatMul(T(Random({1, 4}, dtype)), T(Random({6, 1}, dtype)));
    // Repeated elements.
    CheckMatMul(Expand(Random({5}, dtype), {4, 5}), Random({5, 3}, dtype));
    CheckMatMul(Random({4, 5}, dtype), Expand(Random({5, 1}, dtype), {5, 3}));
    CheckMatMul(Expand(Random({}, dtype), {4, 5}),
                Expand(Random({}, dtype), {5, 3}));
    CheckMatMul(Select(Random({4, 5, 3}, dtype), 2, 1),
                Select(Random({5, 2, 6}, dtype), 1, 1));
  }
  CheckMatMul(T(Random({300, 200})), T(Random({150, 300})));
}

TEST_P(MatMulTest, NothingToAdd) {
  for (const DType dtype : kFloatDTypes) {
    CheckMatMul(Random({0, 3}, dtype), Random({3, 2}, dtype));
    CheckMatMul(Random({2, 3}, dtype), Random({3, 0}, dtype));
    CheckMatMul(Random({3, 0}, dtype), Random({0, 2}, dtype));  // zeros
    CheckMatMul(Random({0}, dtype), Random({0}, dtype));
    CheckMatMul(Random({2, 0}, dtype), Random({0}, dtype));
    CheckMatMul(Random({0, 2, 3}, dtype), Random({3, 4}, dtype));
    CheckMatMul(Random({5, 2, 0}, dtype), Random({5, 0, 4}, dtype));
    CheckMatMul(Random({5, 2, 0}, dtype), Random({0, 4}, dtype));
    // Batches without elements, whose matrices have some.
    CheckMatMul(Random({0, 4, 3}, dtype), Random({3, 17}, dtype));
    CheckMatMul(Random({3, 4}, dtype), Random({0, 4, 200}, dtype));
    CheckMatMul(Random({4}, dtype), Random({0, 4, 2000}, dtype));
    CheckMatMul(Random({0, 2000, 4}, dtype), Random({4}, dtype));
    CheckMatMul(Random({5, 0, 40, 3}, dtype), Random({5, 0, 3, 50}, dtype));
    CheckMatMul(Random({2, 0, 40, 3}, dtype), Random({3, 50}, dtype));
    CheckMatMul(Random({0, 40, 0}, dtype), Random({0, 50}, dtype));
  }
}

TEST_P(MatMulTest, BatchesBroadcast) {
  const std::pair<Shape, Shape> kPairs[] = {{{4, 2, 3}, {4, 3, 5}},
                                            {{4, 2, 3}, {1, 3, 5}},
                                            {{1, 2, 3}, {4, 3, 5}},
                                            {{4, 2, 3}, {3, 5}},
                                            {{2, 3}, {4, 3, 5}},
                                            {{4, 2, 3}, {3}},
                                            {{3}, {4, 3, 5}},
                                            {{2, 1, 4, 2, 3}, {5, 1, 3, 2}},
                                            {{2, 3, 4, 2, 3}, {2, 3, 4, 3, 2}},
                                            {{3, 1, 2, 3}, {1, 4, 3, 2}},
                                            {{2, 3, 1, 4}, {3, 4, 1}},
                                            {{2, 1, 2, 2}, {2, 3, 2, 2}},
                                            {{6, 1, 2, 3}, {3, 3}}};
  for (const DType dtype : kFloatDTypes) {
    for (const auto& [a, b] : kPairs) {
      CheckMatMul(Random(a, dtype), Random(b, dtype));
    }
    // More small products than a GPU has blocks at once.
    CheckMatMul(Random({300, 4, 3}, dtype), Random({300, 3, 5}, dtype));
    // Batches whose own dimensions are views.
    const Tensor x = Random({3, 4, 2, 5}, dtype);
    CheckMatMul(Transpose(x, 0, 1), Random({4, 3, 5, 2}, dtype));
    CheckMatMul(Transpose(x, 1, 2), Random({5, 6}, dtype));
    CheckMatMul(Transpose(x, 2, 3), x);
    CheckMatMul(Slice(x, 0, 0, 3, 2), Random({5, 2}, dtype));
    CheckMatMul(Expand(Random({2, 5}, dtype), {3, 4, 2, 5}),
                Random({4, 5, 1}, dtype));
  }
}

TEST_P(MatMulTest, DotProducts) {
  for (const DType dtype : kFloatDTypes) {
    for (const std::int64_t k : {0, 1, 7, 100003}) {
      for (const Placement placement : kPlacements) {
        const Tensor a = Random({k}, dtype, placement);
        const Tensor b = Random({k}, dtype);
        CheckMatMul(a, b, Dot(a, b));
        CheckMatMul(b, a, Dot(b, a));
        CheckMatMul(a, a, Dot(a, a));
      }
    }
  }
}

TEST_P(MatMulTest, NanAndInfinityReachTheirRowAndColumnOnly) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : kFloatDTypes) {
    const Tensor a =
        Place({1, kNan, 2, 3, 4, kInfinity}, {3, 2}, device(), dtype);
    const Tensor b = Place({1, 2, 0, 3}, {2, 2}, device(), dtype);
    EXPECT_TRUE(Matches(MatMul(a, b), {3, 2}, dtype,
                        {kNan, kNan, 2, 13, kNan, kInfinity}));
    // A matrix of zeros does not hide them.
    const Tensor zeros = Zeros({2, 9}, device(), dtype);
    EXPECT_TRUE(Matches(Slice(MatMul(a, zeros), 0, 2), {1, 9}, dtype,
                        std::vector<double>(9, kNan)));
  }
}

TEST_P(MatMulTest, TheResultIsTheSameEveryTime) {
  const Tensor a = Random({257, 301}), b = Random({301, 203});
  const std::vector<double> first = ValuesOf(MatMul(a, b));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ValuesOf(MatMul(a, b)), first);
}

TEST_P(MatMulTest, OneOperandMayBeBoth) {
  const Tensor x = FromVector<float>({1, 2, 3, 4}, {2, 2}, device());
  EXPECT_THAT(ToVector<float>(MatMul(x, x)), ElementsAre(7, 10, 15, 22));
}

INSTANTIATE_FOR_ALL_DEVICES(MatMulTest);

}  // namespace
}  // namespace d2l
