// Element-wise functions of one operand, and operations in place.

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/source_location.h"
#include "common/kernels/op_tables.h"
#include "common/kernels/testing/unary_cases.h"
#include "common/ops/copy.h"
#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/read.h"
#include "common/ops/testing/testing.h"
#include "common/ops/views.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using kernels::OpTakes;
using kernels::UnaryCase;
using kernels::UnaryCases;

Tensor Call(const UnaryCase& c, const Tensor& x) {
  return Apply(UnaryPrimitive(c.op), {&x}, SourceLocation::Current());
}

std::vector<double> Reference(const UnaryCase& c,
                              const std::vector<double>& values) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const double value : values) result.push_back(c.Exact(value));
  return result;
}

std::vector<double> UnaryValues(const UnaryCase& c, std::int64_t count,
                                DType dtype) {
  std::vector<double> values = RandomValues(count, dtype);
  if (c.domain == kernels::Domain::kPositive) {
    for (double& value : values) value = std::fabs(value);
  }
  return values;
}

class UnaryTest : public DeviceTest {};

TEST_P(UnaryTest, AllShapesAndPlacements) {
  for (const UnaryCase& c : UnaryCases()) {
    for (const DType dtype : kAllDTypes) {
      if (!OpTakes(c.op, dtype)) continue;
      for (const Shape& shape :
           {Shape{}, Shape{1}, Shape{0}, Shape{3, 0, 2}, Shape{1003},
            Shape{5, 7}, Shape{2, 3, 4, 5}, Shape{7, 1, 3}}) {
        for (const Placement placement : kPlacements) {
          const std::vector<double> values =
              UnaryValues(c, shape.numel(), dtype);
          const Tensor x = Place(values, shape, device(), dtype, placement);
          EXPECT_TRUE(
              Matches(Call(c, x), shape, dtype, Reference(c, values), c.ulps))
              << c.name << " " << PlacementName(placement);
          EXPECT_EQ(ValuesOf(x), values) << "the input has changed";
        }
      }
    }
  }
}

TEST_P(UnaryTest, LargeTensors) {
  for (const UnaryCase& c : UnaryCases()) {
    for (const DType dtype : kFloatDTypes) {
      const std::vector<double> values = UnaryValues(c, 331 * 317, dtype);
      for (const Placement placement :
           {Placement::kContiguous, Placement::kTransposed}) {
        const Tensor x = Place(values, {331, 317}, device(), dtype, placement);
        EXPECT_TRUE(Matches(Call(c, x), {331, 317}, dtype, Reference(c, values),
                            c.ulps))
            << c.name << " " << PlacementName(placement);
      }
    }
  }
}

TEST_P(UnaryTest, AnExpandedOperand) {
  for (const UnaryCase& c : UnaryCases()) {
    const std::vector<double> row = UnaryValues(c, 7, DType::kFloat32);
    std::vector<double> expected = Reference(c, row);
    const std::vector<double> one = expected;
    for (int i = 1; i < 5; ++i) {
      expected.insert(expected.end(), one.begin(), one.end());
    }
    EXPECT_TRUE(Matches(Call(c, Expand(Place(row, {7}, device()), {5, 7})),
                        {5, 7}, DType::kFloat32, expected, c.ulps))
        << c.name;
  }
}

TEST_P(UnaryTest, NanInfinityAndTheEdgesOfTheRange) {
  for (const UnaryCase& c : UnaryCases()) {
    for (const DType dtype : kFloatDTypes) {
      const bool single = dtype == DType::kFloat32;
      const double largest = single ? std::numeric_limits<float>::max()
                                    : std::numeric_limits<double>::max();
      const double smallest = single ? std::numeric_limits<float>::min()
                                     : std::numeric_limits<double>::min();
      std::vector<double> values = {
          kNan,     kInfinity, -kInfinity, 0,     -0., 1,   -1,  largest,
          smallest, -smallest, 1e-3,       -1e-3, 88,  -88, 90,  -100,
          -104,     700,       -745,       710,   20,  -20, 1e30};
      if (!single) values.push_back(1e300);
      values.insert(values.end(), c.points.begin(), c.points.end());
      for (double& value : values) value = RoundTo(dtype, value);
      const Shape shape = {static_cast<std::int64_t>(values.size())};
      EXPECT_TRUE(Matches(Call(c, Place(values, shape, device(), dtype)), shape,
                          dtype, Reference(c, values), c.ulps))
          << c.name << " " << DTypeName(dtype);
    }
  }
  EXPECT_TRUE(std::signbit(Item(-Zeros({}, device()))));
  EXPECT_FALSE(std::signbit(Item(Abs(-Zeros({}, device())))));
}

TEST_P(UnaryTest, OtherDTypesAreRefusedAtTheCall) {
  for (const UnaryCase& c : UnaryCases()) {
    if (OpTakes(c.op, DType::kInt64)) continue;
    for (const DType dtype : {DType::kInt64, DType::kUInt8}) {
      for (const Placement placement : kPlacements) {
        const Tensor x = RandomTensor({5, 7}, device(), dtype, placement);
        try {
          Call(c, x);
          ADD_FAILURE() << c.name << " took a tensor of " << dtype;
        } catch (const std::invalid_argument& error) {
          EXPECT_THAT(
              error.what(),
              HasSubstr(absl::StrCat(
                  "[", c.name, "] float32 or float64 wanted; got ",
                  x.Describe(), "; convert it: To(x, DType::kFloat32)")));
        }
      }
    }
  }
}

// ---- In place.

TEST_P(UnaryTest, InPlaceWritesTheViewAndNothingElse) {
  for (const UnaryCase& c : UnaryCases()) {
    for (const DType dtype : kAllDTypes) {
      if (!OpTakes(c.op, dtype)) continue;
      for (const Placement placement : kPlacements) {
        const std::vector<double> values = UnaryValues(c, 35, dtype);
        const Tensor x = Place(values, {5, 7}, device(), dtype, placement);
        const Tensor memory = MemoryOf(x);
        const std::vector<double> before = ValuesOf(memory);
        const std::uint64_t version = x.version();
        ApplyUnaryInPlace(c.op, x);
        EXPECT_EQ(x.version(), version + 1);
        EXPECT_EQ(memory.version(), x.version());
        EXPECT_TRUE(Matches(memory, memory.shape(), dtype,
                            WithValues(before, x, Reference(c, values)),
                            c.ulps))
            << c.name << " " << PlacementName(placement);
      }
    }
  }
}

TEST_P(UnaryTest, FillInPlaceWritesTheViewAndNothingElse) {
  for (const DType dtype : kAllDTypes) {
    for (const Placement placement : kPlacements) {
      const Tensor x = RandomTensor({5, 7}, device(), dtype, placement);
      const Tensor memory = MemoryOf(x);
      const std::vector<double> before = ValuesOf(memory);
      FillInPlace(x, 3);
      EXPECT_TRUE(Matches(memory, memory.shape(), dtype,
                          WithValues(before, x, std::vector<double>(35, 3))));
    }
    const Tensor large = RandomTensor({100003}, device(), dtype);
    FillInPlace(large, 7);
    EXPECT_EQ(ValuesOf(large), std::vector<double>(100003, 7));
    FillInPlace(RandomTensor({0, 3}, device(), dtype), 7);
  }
  const Tensor exact = Zeros({2}, device(), DType::kInt64);
  FillInPlace(exact, (std::int64_t{1} << 53) + 1);
  EXPECT_EQ(ToVector<std::int64_t>(exact)[1], (std::int64_t{1} << 53) + 1);
}

struct InPlaceCase {
  const char* name;
  void (*tensor)(Tensor& x, const Operand& y);
  double (*reference)(double a, double b);
};
const InPlaceCase kInPlaceCases[] = {
    {"+=", [](Tensor& x, const Operand& y) { x += y; },
     [](double a, double b) { return a + b; }},
    {"-=", [](Tensor& x, const Operand& y) { x -= y; },
     [](double a, double b) { return a - b; }},
    {"*=", [](Tensor& x, const Operand& y) { x *= y; },
     [](double a, double b) { return a * b; }},
    {"/=", [](Tensor& x, const Operand& y) { x /= y; },
     [](double a, double b) { return a / b; }},
};

// x op= y, checked: also that only x's elements of its memory change.
void CheckInPlace(const InPlaceCase& c, Tensor x, const Tensor& y) {
  const std::vector<double> a = ValuesOf(x), b = ValuesOf(y);
  std::vector<double> expected(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    expected[i] = c.reference(a[i], BroadcastAt(b, y.shape(), x.shape(), i));
  }
  const Tensor memory = MemoryOf(x);
  const std::vector<double> before = ValuesOf(memory);
  const std::uint64_t version = x.version();
  const std::uint64_t id = x.id();
  const void* const data = x.data();
  c.tensor(x, y);
  EXPECT_EQ(x.version(), version + 1);
  EXPECT_EQ(x.id(), id);
  EXPECT_EQ(x.data(), data);
  EXPECT_TRUE(Matches(memory, memory.shape(), x.dtype(),
                      WithValues(before, x, expected)))
      << c.name << " a " << x.Describe() << " with strides " << x.strides()
      << " and a " << y.Describe() << " with strides " << y.strides();
}

TEST_P(UnaryTest, OperatorsInPlace) {
  for (const InPlaceCase& c : kInPlaceCases) {
    for (const DType dtype : kAllDTypes) {
      const bool divides = c.name[0] == '/';
      if (divides && !IsFloatingPoint(dtype)) continue;
      for (const Placement p : kPlacements) {
        const auto random = [&](const Shape& shape, Placement placement) {
          return RandomTensor(shape, device(), dtype, placement);
        };
        for (const Placement q : kPlacements) {
          CheckInPlace(c, random({5, 7}, p), random({5, 7}, q));
        }
        CheckInPlace(c, random({5, 7}, p), random({7}, p));
        CheckInPlace(c, random({5, 7}, p), random({5, 1}, p));
        CheckInPlace(c, random({5, 7}, p), random({}, p));
        CheckInPlace(c, random({0, 7}, p), random({7}, p));
        // Itself.
        const Tensor x = random({5, 7}, p);
        CheckInPlace(c, x, x);
        Tensor y = random({3, 5}, p);
        const std::vector<double> expected =
            Map(y, [&](double a) { return c.reference(a, 2); });
        c.tensor(y, 2);
        EXPECT_TRUE(Matches(y, {3, 5}, dtype, expected)) << c.name;
      }
    }
    CheckInPlace(c, RandomTensor({331, 317}, device()),
                 RandomTensor({331, 317}, device()));
  }
}

TEST_P(UnaryTest, OperandsThatOverlapTheTarget) {
  const InPlaceCase& add = kInPlaceCases[0];
  for (const std::int64_t n : {7, 331}) {
    const Tensor x = RandomTensor({n, n}, device());
    CheckInPlace(add, x, T(x));
    CheckInPlace(add, Slice(x, 1, 0, n - 2), Slice(x, 1, 1, n - 1));
    CheckInPlace(add, Slice(x, 1, 1, n - 1), Slice(x, 1, 0, n - 2));
    CheckInPlace(add, Slice(x, 0, 0, n, 2), Slice(x, 0, 0, (n + 1) / 2));
    CheckInPlace(add, T(x), x);
    // A row for all rows, where the target is not contiguous.
    CheckInPlace(add, Slice(x, 1, 0, n - 1),
                 Slice(Select(x, 0, 0), 0, 0, n - 1));
    // Columns of one matrix do not meet.
    CheckInPlace(add, Select(x, 1, 0), Select(x, 1, 2));
    CheckInPlace(add, Slice(x, 1, 0, n - 1, 2), Slice(x, 1, 1, n, 2));
  }
}

TEST_P(UnaryTest, NeighboursInOneMemoryMayBeUsedTogether) {
  const Tensor x = Arange(12, device());
  Tensor first = Slice(x, 0, 0, 6);
  first += Slice(x, 0, 6, 12);
  EXPECT_THAT(ToVector<float>(x),
              ElementsAre(6, 8, 10, 12, 14, 16, 6, 7, 8, 9, 10, 11));
  Tensor even = Slice(x, 0, 0, 12, 2);
  even *= Slice(x, 0, 1, 12, 2);
  EXPECT_THAT(ToVector<float>(x),
              ElementsAre(48, 8, 120, 12, 224, 16, 42, 7, 72, 9, 110, 11));
}

TEST_P(UnaryTest, VersionsAreTheMemorys) {
  Tensor x = Ones({2, 3}, device());
  const Tensor same = x;
  const Tensor row = Select(x, 0, 0);
  const std::uint64_t version = x.version();
  x += 1;
  EXPECT_EQ(row.version(), version + 1);
  x *= x;
  FillInPlace(row, 5);
  EXPECT_EQ(x.version(), version + 3);
  EXPECT_EQ(same.version(), version + 3);
  ApplyUnaryInPlace(kernels::UnaryOp::kRelu, T(x));
  CopyTo(Ones({3}, device()), row);
  EXPECT_EQ(x.version(), version + 5);
  const Tensor y = x + 1;
  const Tensor copy = Clone(x);
  EXPECT_EQ(x.version(), version + 5) << "reading is not writing";
  EXPECT_THAT(ToVector<float>(same), ElementsAre(1, 1, 1, 4, 4, 4));
}

INSTANTIATE_FOR_ALL_DEVICES(UnaryTest);

}  // namespace
}  // namespace d2l
