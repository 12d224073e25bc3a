// Operations that add to a tensor: AxpbyInPlace, IndexAdd, ScatterAdd.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/failure.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

class UpdatesTest : public DeviceTest {
 protected:
  Tensor Index(const std::vector<std::int64_t>& values,
               const Shape& shape) const {
    return FromVector<std::int64_t>(values, shape, device());
  }
};
INSTANTIATE_FOR_ALL_DEVICES(UpdatesTest);

TEST_P(UpdatesTest, AxpbyAgreesWithTheSlowVersion) {
  for (const DType dtype : kFloatDTypes) {
    for (const Placement of_y : kPlacements) {
      for (const Placement of_x : kPlacements) {
        for (const Shape& shape :
             {Shape{3, 37}, Shape{0, 4}, Shape{300, 301}}) {
          for (const double beta : {0.0, 1.0, 0.75}) {
            const Tensor y = RandomTensor(shape, device(), dtype, of_y);
            const Tensor x = RandomTensor(shape, device(), dtype, of_x);
            const std::vector<double> xs = ValuesOf(x), ys = ValuesOf(y);
            const std::vector<double> memory = ValuesOf(MemoryOf(y));
            AxpbyInPlace(y, -0.5, x, beta);
            std::vector<double> expected, errors;
            for (std::size_t i = 0; i < xs.size(); ++i) {
              expected.push_back(-0.5 * xs[i] + beta * ys[i]);
              errors.push_back(Epsilon(dtype) *
                               (std::abs(xs[i]) + 2 * std::abs(ys[i])));
            }
            EXPECT_TRUE(IsNear(y, shape, dtype, expected, errors));
            EXPECT_EQ(ValuesOf(MemoryOf(y)),
                      WithValues(memory, y, ValuesOf(y)));
          }
        }
      }
    }
  }
}

// With beta = 0, NaN in y does not matter; and y may be x.
TEST_P(UpdatesTest, AxpbyOfNaNAndOfItself) {
  const double kNaN = std::nan("");
  const Tensor y = Place({kNaN, 1, 2}, {3}, device());
  AxpbyInPlace(y, 2, Place({3, 4, 5}, {3}, device()), 0);
  EXPECT_TRUE(Matches(y, {3}, DType::kFloat32, {6, 8, 10}));
  AxpbyInPlace(y, 0.5, y, 1);
  EXPECT_TRUE(Matches(y, {3}, DType::kFloat32, {9, 12, 15}));
}

TEST_P(UpdatesTest, AxpbyRefuses) {
  const Tensor y = Zeros({3}, device()), x = Zeros({1, 3}, device());
  EXPECT_REFUSED("[axpby] two tensors of one shape and dtype wanted; got " +
                     y.Describe() + " and " + x.Describe(),
                 AxpbyInPlace(y, 1, x, 1));
  const Tensor integers = Zeros({3}, device(), DType::kInt64);
  EXPECT_REFUSED("[axpby] float32 or float64 wanted; got " +
                     integers.Describe() +
                     "; convert it: To(x, DType::kFloat32)",
                 AxpbyInPlace(integers, 1, integers, 1));
}

TEST_P(UpdatesTest, IndexAddAgreesWithTheSlowVersion) {
  struct OneCase {
    Shape x;
    int dim;
    std::int64_t count;
  };
  const OneCase cases[] = {
      {{5, 3}, 0, 7}, {{3, 5}, -1, 9},       {{2, 4, 3}, 1, 2},  {{4}, 0, 30},
      {{4, 3}, 0, 0}, {{1, 7, 4000}, 1, 20}, {{60, 5, 90}, 1, 8}};
  for (const DType dtype : kFloatDTypes) {
    for (const OneCase& one : cases) {
      SCOPED_TRACE(one.x.ToString());
      const int dim = one.dim < 0 ? one.dim + one.x.rank() : one.dim;
      Shape taken = one.x;
      taken[dim] = one.count;
      const Tensor x =
          RandomTensor(one.x, device(), dtype, Placement::kTransposed);
      const Tensor source =
          RandomTensor(taken, device(), dtype, Placement::kTransposed);
      const std::vector<double> xs = ValuesOf(x), sources = ValuesOf(source);
      for (const bool scatter : {false, true}) {
        std::vector<std::int64_t> index;
        const std::int64_t indices = scatter ? taken.numel() : one.count;
        for (std::int64_t i = 0; i < indices; ++i) {
          index.push_back((i * i + i / 5) % one.x[dim]);
        }
        std::vector<double> expected = xs;
        for (const Position& position : PositionsIn(taken)) {
          const std::int64_t number = NumberOf(position, taken);
          Position to = position;
          to[dim] = index[scatter ? number : position[dim]];
          double& sum = expected[NumberOf(to, one.x)];
          sum = RoundTo(dtype, sum + sources[number]);  // in this order
        }
        const Tensor y =
            scatter ? ScatterAdd(x, one.dim, Index(index, taken), source)
                    : IndexAdd(x, one.dim, Index(index, {one.count}), source);
        EXPECT_TRUE(Matches(y, one.x, dtype, expected));
        EXPECT_EQ(ValuesOf(x), xs);
      }
    }
  }
}

// As in PyTorch, the index may be shorter than x outside of `dim`, and than the
// source.
TEST_P(UpdatesTest, ScatterAddTakesAShorterIndex) {
  struct OneCase {
    Shape x, index, source;
    int dim;
  };
  const OneCase cases[] = {{{3, 4}, {2, 2}, {2, 2}, 0},
                           {{3, 4}, {2, 2}, {3, 5}, 1},
                           {{3, 4}, {2, 9}, {2, 9}, 1},
                           {{3, 4}, {7, 1}, {8, 3}, -2},
                           {{4, 5, 3}, {2, 6, 1}, {2, 7, 3}, 1},
                           {{2, 3, 2, 4}, {1, 2, 3, 2}, {1, 2, 3, 4}, 2},
                           {{5}, {3}, {4}, 0},
                           {{3, 4}, {0, 4}, {1, 1}, 0},
                           {{3, 4}, {0}, {1}, 1},
                           {{0, 4}, {0, 2}, {3, 2}, 0}};
  for (const DType dtype : kFloatDTypes) {
    for (const OneCase& one : cases) {
      SCOPED_TRACE(one.x.ToString() + one.index.ToString());
      const int dim = one.dim < 0 ? one.dim + one.x.rank() : one.dim;
      const Tensor x =
          RandomTensor(one.x, device(), dtype, Placement::kTransposed);
      const Tensor source =
          RandomTensor(one.source, device(), dtype, Placement::kTransposed);
      const std::vector<double> xs = ValuesOf(x), sources = ValuesOf(source);
      std::vector<double> expected = xs;
      std::vector<std::int64_t> index;
      for (const Position& position : PositionsIn(one.index)) {
        const auto i = static_cast<std::int64_t>(index.size());
        index.push_back((i * i + i / 3) % one.x[dim]);
        Position to = position;
        to[dim] = index.back();
        double& sum = expected[NumberOf(to, one.x)];
        sum = RoundTo(dtype, sum + sources[NumberOf(position, one.source)]);
      }
      const Tensor y = ScatterAdd(x, one.dim, Index(index, one.index), source);
      EXPECT_TRUE(Matches(y, one.x, dtype, expected));
      EXPECT_EQ(ValuesOf(x), xs);
    }
  }
  // A scalar counts as a vector.
  const Tensor scalar = Place({3}, {}, device());
  EXPECT_TRUE(Matches(ScatterAdd(scalar, 0, Index({0}, {}), scalar), {},
                      DType::kFloat32, {6}));
  EXPECT_TRUE(Matches(
      ScatterAdd(scalar, -1, Index({0, 0}, {2}), Place({2, 4}, {2}, device())),
      {}, DType::kFloat32, {9}));
}

TEST_P(UpdatesTest, IndexAddInPlaceWritesToItsTarget) {
  const Tensor x = Place({1, 2, 3}, {3}, device());
  const Tensor index = Index({2, 0, 2}, {3});
  const Tensor source = Place({10, 20, 30}, {3}, device());
  ApplyInPlace(IndexAddPrimitive(kernels::IndexOp::kSelect, 0),
               {&x, &index, &source}, x, SourceLocation::Current());
  EXPECT_TRUE(Matches(x, {3}, DType::kFloat32, {21, 2, 43}));
}

TEST_P(UpdatesTest, AnIndexOutOfRangeFailsLate) {
  const Tensor x = Zeros({3, 2}, device());
  for (const bool scatter : {false, true}) {
    const Shape shape = scatter ? Shape{2, 2} : Shape{2};
    const Tensor index = Index(scatter ? std::vector<std::int64_t>{0, 1, 3, 0}
                                       : std::vector<std::int64_t>{0, -1},
                               shape);
    const Tensor source = Ones({2, 2}, device());
    const SourceLocation at = SourceLocation::Current();
    const Tensor y = scatter ? ScatterAdd(x, 0, index, source, at)
                             : IndexAdd(x, 0, index, source, at);
    try {
      ValuesOf(y);
      FAIL() << "nothing was thrown";
    } catch (const AsyncError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("is out of range; valid are 0..2"), std::string::npos)
          << what;
      EXPECT_NE(what.find(at.ToString()), std::string::npos) << what;
    }
  }
}

TEST_P(UpdatesTest, IndexAddRefuses) {
  const Tensor x = Zeros({3, 2}, device()), source = Zeros({3, 2}, device());
  EXPECT_REFUSED(
      "[index_add] a source of shape (2, 2) and of the tensor's dtype wanted; "
      "got " +
          source.Describe() + " to add to " + x.Describe(),
      IndexAdd(x, 0, Index({0, 1}, {2}), source));
  EXPECT_REFUSED("[index_add] the index must be a vector; got (1, 1)",
                 IndexAdd(x, 0, Index({0}, {1, 1}), source));
}

TEST_P(UpdatesTest, ScatterAddRefuses) {
  const Tensor x = Zeros({3, 2}, device()), source = Zeros({3, 2}, device());
  for (const Shape& shape :
       {Shape{3, 3}, Shape{4, 2}, Shape{1, 1, 1}, Shape{2}}) {
    const Tensor index = Zeros(shape, device(), DType::kInt64);
    EXPECT_REFUSED(
        "[scatter_add] an index wanted with as many dimensions as the tensor "
        "and the source, none longer than theirs, but than the tensor's "
        "dimension 0: index " +
            shape.ToString() + ", tensor (3, 2), source (3, 2)",
        ScatterAdd(x, 0, index, source));
  }
  EXPECT_REFUSED("[scatter_add] an int64 index wanted; got " + x.Describe(),
                 ScatterAdd(x, 0, x, source));
  EXPECT_REFUSED("[scatter_add] dimension 2 is out of range; valid are -2 to 1",
                 ScatterAdd(x, 2, Index({0}, {1, 1}), source));
  const Tensor undefined{};
  EXPECT_REFUSED(
      "[scatter_add] an operand is an undefined tensor (a Tensor that was "
      "declared and never assigned)",
      ScatterAdd(x, 0, undefined, source));
}

}  // namespace
}  // namespace d2l
