// Reductions against loops in double precision.

#include "common/ops/reduction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <vector>

#include "common/base/source_location.h"
#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/ops/read.h"
#include "common/ops/testing/testing.h"
#include "common/ops/views.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The values that are reduced to each element, in order.
struct Groups {
  Shape shape;  // of the result, with the reduced dimensions as 1
  std::vector<std::vector<double>> values;
};
Groups GroupsOf(const Tensor& x, const std::set<int>& dims) {
  Groups groups;
  groups.shape = x.shape();
  for (int d = 0; d < x.dim(); ++d) {
    if (dims.empty() || dims.count(d) != 0) groups.shape[d] = 1;
  }
  groups.values.resize(groups.shape.numel());
  const std::vector<double> values = ValuesOf(x);
  std::size_t i = 0;
  for (Position position : PositionsIn(x.shape())) {
    for (int d = 0; d < x.dim(); ++d) {
      if (groups.shape[d] == 1) position[d] = 0;
    }
    groups.values[NumberOf(position, groups.shape)].push_back(values[i++]);
  }
  return groups;
}

// `shape` without the reduced dimensions.
Shape Reduced(const Shape& shape, const std::set<int>& dims) {
  std::vector<std::int64_t> sizes;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!dims.empty() && dims.count(d) == 0) sizes.push_back(shape[d]);
  }
  return Shape(sizes);
}

using Values = std::vector<double>;
double SumReference(const Values& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}
double MaxReference(const Values& values) {
  double max = values[0];
  for (const double value : values) {
    if (std::isnan(value)) return kNan;
    max = std::max(max, value);
  }
  return max;
}
double MinReference(const Values& values) {
  double min = values[0];
  for (const double value : values) {
    if (std::isnan(value)) return kNan;
    min = std::min(min, value);
  }
  return min;
}
double ArgMaxReference(const Values& values) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) return i;
    if (values[i] > values[best]) best = i;
  }
  return best;
}

// How often a number may be rounded in a sum of `count`: long sums are made of
// the sums of blocks.
double Additions(double count) { return std::min(count, 300.) + 1; }

Dims ToDims(const std::set<int>& dims) {
  switch (dims.size()) {
    case 0:
      return {};
    case 1:
      return *dims.begin();
    case 2:
      return {*dims.rbegin(), *dims.begin()};  // their order does not matter
    default:
      return {*dims.begin(), *std::next(dims.begin()), *dims.rbegin()};
  }
}

// All reductions of x over `dims`, with and without keepdim.
void CheckReductions(const Tensor& x, const std::set<int>& dims) {
  SCOPED_TRACE(x.Describe() + ", strides " + x.strides().ToString() +
               ", dimensions " + testing::PrintToString(dims));
  const Groups groups = GroupsOf(x, dims);
  const bool real = IsFloatingPoint(x.dtype());
  for (const bool keepdim : {false, true}) {
    const Shape shape = keepdim ? groups.shape : Reduced(x.shape(), dims);
    const auto expected = [&](double (*reference)(const Values&)) {
      Values result;
      for (const Values& group : groups.values) {
        result.push_back(reference(group));
      }
      return result;
    };
    Values sums = expected(SumReference), means, errors, mean_errors;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      double size = 0;
      for (const double value : groups.values[i]) size += std::fabs(value);
      const double count = groups.values[i].size();
      means.push_back(sums[i] / count);
      errors.push_back(real ? Epsilon(x.dtype()) * Additions(count) * size : 0);
      mean_errors.push_back((errors[i] + Epsilon(x.dtype()) * size) / count);
    }
    EXPECT_TRUE(IsNear(Sum(x, ToDims(dims), keepdim), shape,
                       real ? x.dtype() : DType::kInt64, sums, errors));
    if (real) {
      EXPECT_TRUE(IsNear(Mean(x, ToDims(dims), keepdim), shape, x.dtype(),
                         means, mean_errors));
    }
    if (!groups.values.empty() && groups.values[0].empty()) continue;
    EXPECT_TRUE(Matches(Max(x, ToDims(dims), keepdim), shape, x.dtype(),
                        expected(MaxReference)));
    EXPECT_TRUE(Matches(Min(x, ToDims(dims), keepdim), shape, x.dtype(),
                        expected(MinReference)));
    if (dims.size() > 1) continue;
    EXPECT_TRUE(Matches(ArgMax(x, ToDims(dims), keepdim), shape, DType::kInt64,
                        expected(ArgMaxReference)));
  }
}

class ReductionTest : public DeviceTest {
 protected:
  // Few different numbers, so that there are equal ones.
  Tensor Random(const Shape& shape, DType dtype = DType::kFloat32,
                Placement placement = Placement::kContiguous,
                bool repeats = false) const {
    Values values = RandomValues(shape.numel(), dtype);
    if (repeats) {
      for (double& value : values) value = std::trunc(std::fmod(value, 4));
    }
    return Place(values, shape, device(), dtype, placement);
  }
};

TEST_P(ReductionTest, AllDimensionsAndPlacements) {
  const std::set<int> kDims[] = {{},     {0},    {1},    {2},
                                 {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}};
  for (const DType dtype : kAllDTypes) {
    for (const Placement placement : kPlacements) {
      for (const std::set<int>& dims : kDims) {
        CheckReductions(Random({3, 5, 7}, dtype, placement), dims);
        CheckReductions(Random({3, 5, 7}, dtype, placement, true), dims);
        CheckReductions(Random({17, 1, 33}, dtype, placement), dims);
      }
      CheckReductions(Random({}, dtype, placement), {});
      CheckReductions(Random({1}, dtype, placement), {0});
      CheckReductions(Random({1003}, dtype, placement), {});
      CheckReductions(Random({2, 3, 2, 4, 3}, dtype, placement), {0, 2, 4});
      CheckReductions(Random({2, 3, 2, 4, 3}, dtype, placement), {1, 3});
    }
    CheckReductions(Expand(Random({7}, dtype), {5, 7}), {0});
    CheckReductions(Expand(Random({5, 1}, dtype), {5, 7}), {1});
    CheckReductions(Expand(Random({}, dtype), {5, 7}), {});
    CheckReductions(Transpose(Random({4, 3, 6}, dtype), 0, 2), {1});
    CheckReductions(Transpose(Random({4, 3, 6}, dtype), 0, 1), {0, 2});
  }
}

TEST_P(ReductionTest, LargeTensors) {
  for (const DType dtype : kAllDTypes) {
    CheckReductions(Random({100003}, dtype), {});
    for (const Placement placement :
         {Placement::kContiguous, Placement::kTransposed}) {
      const Tensor x = Random({331, 317}, dtype, placement);
      CheckReductions(x, {});
      CheckReductions(x, {0});
      CheckReductions(x, {1});
    }
    CheckReductions(Random({100003, 2}, dtype), {0});
    CheckReductions(Random({2, 100003}, dtype), {1});
    CheckReductions(Random({40, 53, 61}, dtype), {1});
  }
}

TEST_P(ReductionTest, NegativeDimensionsCountFromTheEnd) {
  const Tensor x = Random({3, 5, 7});
  EXPECT_EQ(ValuesOf(Sum(x, -1)), ValuesOf(Sum(x, 2)));
  EXPECT_EQ(ValuesOf(Sum(x, {-3, 2})), ValuesOf(Sum(x, {0, 2})));
  EXPECT_EQ(ValuesOf(ArgMax(x, -2)), ValuesOf(ArgMax(x, 1)));
  EXPECT_EQ(Sum(Random({}), 0).shape(), Shape());
  EXPECT_EQ(Max(Random({}), -1).shape(), Shape());
}

TEST_P(ReductionTest, NoElements) {
  for (const DType dtype : kAllDTypes) {
    CheckReductions(Random({0}, dtype), {});
    CheckReductions(Random({3, 0}, dtype), {1});
    CheckReductions(Random({3, 0}, dtype), {0});
    CheckReductions(Random({0, 3}, dtype), {1});
    CheckReductions(Random({2, 0, 3}, dtype), {0, 2});
  }
  EXPECT_EQ(Item(Sum(Zeros({0}, device()))), 0);
  EXPECT_TRUE(std::isnan(Item(Mean(Zeros({0}, device())))));
}

TEST_P(ReductionTest, SumsOfIntegersAreInt64AndExact) {
  constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;
  const Tensor x =
      FromVector<std::int64_t>({kBig, 2, -kBig, kBig}, {2, 2}, device());
  EXPECT_EQ(Item<std::int64_t>(Sum(x)), kBig + 2);
  EXPECT_THAT(ToVector<std::int64_t>(Sum(x, 0)), ElementsAre(0, kBig + 2));
  EXPECT_THAT(ToVector<std::int64_t>(Max(x, 1)), ElementsAre(kBig, kBig));
  EXPECT_THAT(ToVector<std::int64_t>(Min(x, 1)), ElementsAre(2, -kBig));
  const Tensor near =
      FromVector<std::int64_t>({kBig, kBig + 1, kBig}, {3}, device());
  EXPECT_EQ(Item<std::int64_t>(ArgMax(near)), 1);
  const Tensor bytes = Full({100003}, 255, device(), DType::kUInt8);
  EXPECT_EQ(Item<std::int64_t>(Sum(bytes)), 255 * 100003);
}

TEST_P(ReductionTest, NanAndInfinity) {
  for (const DType dtype : kFloatDTypes) {
    for (const std::int64_t n : {3, 100, 100003}) {
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        Values values = RandomValues(n, dtype);
        const auto reduce =
            [&](Tensor (*f)(const Tensor&, const Dims&, bool, SourceLocation)) {
              return Item(f(Place(values, {n}, device(), dtype), {}, false,
                            SourceLocation::Current()));
            };
        values[at] = kInfinity;
        EXPECT_EQ(reduce(Sum), kInfinity);
        EXPECT_EQ(reduce(Mean), kInfinity);
        EXPECT_EQ(reduce(Max), kInfinity);
        EXPECT_EQ(reduce(Min), MinReference(values));
        EXPECT_EQ(reduce(ArgMax), at);
        values[at] = kNan;
        values[n / 3] = n / 3 == at ? kNan : kInfinity;
        EXPECT_TRUE(std::isnan(reduce(Sum)));
        EXPECT_TRUE(std::isnan(reduce(Max)));
        EXPECT_TRUE(std::isnan(reduce(Min)));
        EXPECT_EQ(reduce(ArgMax), at);
        values[n - 1] = kNan;  // the first counts
        EXPECT_EQ(reduce(ArgMax), at);
      }
    }
    // Along each dimension; -inf is the largest if there is nothing else.
    const Tensor x = Place({-kInfinity, 1, kNan, -kInfinity, kNan, 2}, {2, 3},
                           device(), dtype);
    EXPECT_TRUE(Matches(Max(x, 0), {3}, dtype, {-kInfinity, kNan, kNan}));
    EXPECT_TRUE(Matches(ArgMax(x, 0), {3}, DType::kInt64, {0, 1, 0}));
    EXPECT_TRUE(Matches(ArgMax(x, 1), {2}, DType::kInt64, {2, 1}));
    const Tensor low = Full({7, 3}, -kInfinity, device(), dtype);
    EXPECT_TRUE(Matches(Max(low, 0), {3}, dtype, Values(3, -kInfinity)));
    EXPECT_TRUE(Matches(ArgMax(low, 0), {3}, DType::kInt64, Values(3, 0)));
  }
}

TEST_P(ReductionTest, TheResultIsTheSameEveryTime) {
  const Tensor x = Random({100003}), y = Random({331, 317});
  const double sum = Item(Sum(x));
  const Values rows = ValuesOf(Mean(y, 1)), columns = ValuesOf(Sum(y, 0));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Item(Sum(x)), sum);
    EXPECT_EQ(ValuesOf(Mean(y, 1)), rows);
    EXPECT_EQ(ValuesOf(Sum(y, 0)), columns);
  }
}

// ---- Softmax.

void CheckSoftmax(const Tensor& x, int dim) {
  const int d = x.dim() == 0 ? 0 : dim < 0 ? dim + x.dim() : dim;
  const Groups groups = GroupsOf(x, {d});
  Values max;
  std::vector<long double> sum;
  for (const Values& values : groups.values) {
    if (values.empty()) continue;
    max.push_back(MaxReference(values));
    sum.push_back(0);
    for (const double value : values) {
      sum.back() += std::exp(static_cast<long double>(value) - max.back());
    }
  }
  const Values values = ValuesOf(x);
  Values soft, logs, soft_errors, log_errors;
  const double epsilon = Epsilon(x.dtype());
  std::size_t i = 0;
  for (Position position : PositionsIn(x.shape())) {
    if (x.dim() > 0) position[d] = 0;
    const std::int64_t group = NumberOf(position, groups.shape);
    const double distance = values[i++] - max[group];
    soft.push_back(std::exp(distance) / sum[group]);
    logs.push_back(distance - std::log(sum[group]));
    // Roundings: of the exponent, the sum, and the quotient.
    const double roundings = 8 + Additions(groups.values[group].size());
    soft_errors.push_back(soft.back() * epsilon *
                              (roundings + std::fabs(distance)) +
                          std::numeric_limits<float>::denorm_min());
    log_errors.push_back(epsilon * (roundings + std::fabs(logs.back())));
  }
  EXPECT_TRUE(IsNear(Softmax(x, dim), x.shape(), x.dtype(), soft, soft_errors))
      << x.strides() << " dimension " << dim;
  EXPECT_TRUE(
      IsNear(LogSoftmax(x, dim), x.shape(), x.dtype(), logs, log_errors))
      << x.strides() << " dimension " << dim;
}

TEST_P(ReductionTest, SoftmaxAgainstTheLoop) {
  for (const DType dtype : kFloatDTypes) {
    for (const Placement placement : kPlacements) {
      for (const int dim : {0, 1, 2, -1}) {
        CheckSoftmax(Random({3, 5, 7}, dtype, placement), dim);
        CheckSoftmax(Random({17, 1, 33}, dtype, placement), dim);
      }
      CheckSoftmax(Random({1003}, dtype, placement), 0);
    }
    CheckSoftmax(Random({}, dtype), 0);
    CheckSoftmax(Random({0, 3}, dtype), 1);
    CheckSoftmax(Random({3, 0}, dtype), 1);
    CheckSoftmax(Random({331, 317}, dtype), 1);
    CheckSoftmax(Random({331, 317}, dtype), 0);
    CheckSoftmax(Random({100003}, dtype), 0);
    CheckSoftmax(Expand(Random({7}, dtype), {5, 7}), 0);
  }
}

TEST_P(ReductionTest, SoftmaxDoesNotOverflow) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor x = Place({1e30, 0, -1e30, 1000, 1000, -kInfinity, kNan, 0, 0},
                           {3, 3}, device(), dtype);
    EXPECT_TRUE(Matches(Softmax(x, 1), {3, 3}, dtype,
                        {1, 0, 0, 0.5, 0.5, 0, kNan, kNan, kNan}));
    EXPECT_TRUE(Matches(LogSoftmax(x, 1), {3, 3}, dtype,
                        {0, -1e30, -2e30, -std::log(2.), -std::log(2.),
                         -kInfinity, kNan, kNan, kNan},
                        1));
    CheckSoftmax(Random({50, 9}, dtype) * 30, 1);
  }
}

INSTANTIATE_FOR_ALL_DEVICES(ReductionTest);

}  // namespace
}  // namespace d2l
