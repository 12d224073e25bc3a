// Compares functions of two and three operands with double precision.

#include "common/ops/elementwise.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/ops/creation.h"
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

// ---- Of two operands.

// As in Python, which computes the remainder exactly.
double FloorDivideReference(double a, double b) {
  if (b == 0) return a / b;
  const double remainder = std::fmod(a, b);
  double quotient = (a - remainder) / b;
  if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
  const double floor = std::floor(quotient);
  return quotient - floor > 0.5 ? floor + 1 : floor;
}

double PowReference(double a, double b, DType dtype) {
  if (IsFloatingPoint(dtype)) return std::pow(a, b);
  double power = 1;
  for (int i = 0; i < b; ++i) power = RoundTo(dtype, power * a);
  return power;
}

double MaximumReference(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNan : a > b ? a : b;
}

enum class Second { kAny, kDivisor, kExponent };

struct BinaryCase {
  const char* name;
  Tensor (*op)(const Operand& a, const Operand& b);
  double (*reference)(double a, double b, DType dtype);
  Second second = Second::kAny;
  double ulps = 0;
  bool comparison = false;

  DType ResultDType(DType dtype) const {
    if (comparison) return DType::kUInt8;
    return std::string(name) == "div" && !IsFloatingPoint(dtype)
               ? DType::kFloat32
               : dtype;
  }
};

using Op = const Operand&;
const BinaryCase kBinaryCases[] = {
    {"add", [](Op a, Op b) { return a + b; },
     [](double a, double b, DType) { return a + b; }},
    {"sub", [](Op a, Op b) { return a - b; },
     [](double a, double b, DType) { return a - b; }},
    {"mul", [](Op a, Op b) { return a * b; },
     [](double a, double b, DType) { return a * b; }},
    {"div", [](Op a, Op b) { return a / b; },
     [](double a, double b, DType) { return a / b; }},
    {"floor_divide", [](Op a, Op b) { return FloorDivide(a, b); },
     [](double a, double b, DType) { return FloorDivideReference(a, b); },
     Second::kDivisor},
    {"pow", [](Op a, Op b) { return Pow(a, b); }, PowReference,
     Second::kExponent, /*ulps=*/2},
    {"maximum", [](Op a, Op b) { return Maximum(a, b); },
     [](double a, double b, DType) { return MaximumReference(a, b); }},
    {"minimum", [](Op a, Op b) { return Minimum(a, b); },
     [](double a, double b, DType) { return -MaximumReference(-a, -b); }},
    {"eq", [](Op a, Op b) { return a == b; },
     [](double a, double b, DType) { return a == b ? 1. : 0.; }, Second::kAny,
     0, true},
    {"ne", [](Op a, Op b) { return a != b; },
     [](double a, double b, DType) { return a != b ? 1. : 0.; }, Second::kAny,
     0, true},
    {"lt", [](Op a, Op b) { return a < b; },
     [](double a, double b, DType) { return a < b ? 1. : 0.; }, Second::kAny, 0,
     true},
    {"le", [](Op a, Op b) { return a <= b; },
     [](double a, double b, DType) { return a <= b ? 1. : 0.; }, Second::kAny,
     0, true},
    {"gt", [](Op a, Op b) { return a > b; },
     [](double a, double b, DType) { return a > b ? 1. : 0.; }, Second::kAny, 0,
     true},
    {"ge", [](Op a, Op b) { return a >= b; },
     [](double a, double b, DType) { return a >= b ? 1. : 0.; }, Second::kAny,
     0, true},
};

// Random operands that the function is defined for.
Tensor FirstOperand(const BinaryCase& c, const Shape& shape, Device device,
                    DType dtype, Placement placement = {}) {
  std::vector<double> values = RandomValues(shape.numel(), dtype);
  if (c.second == Second::kExponent) {
    for (double& value : values) {
      value = IsFloatingPoint(dtype) ? std::fabs(value) : std::fmod(value, 8);
    }
  } else if (c.comparison) {
    // Few different numbers: some are equal.
    for (double& value : values) value = std::trunc(std::fmod(value, 3));
  }
  return Place(values, shape, device, dtype, placement);
}
Tensor SecondOperand(const BinaryCase& c, const Shape& shape, Device device,
                     DType dtype, Placement placement = {}) {
  if (c.second != Second::kExponent && c.second != Second::kDivisor) {
    return FirstOperand(c, shape, device, dtype, placement);
  }
  std::vector<double> values = RandomValues(shape.numel(), dtype);
  for (double& value : values) {
    if (c.second == Second::kDivisor) {
      // Not so small that the quotient would have to be rounded.
      if (std::fabs(value) < 0.05) value = value < 0 ? -3 : 7;
    } else if (!IsFloatingPoint(dtype)) {
      value = std::fmod(std::fabs(value), 11);
    }
  }
  return Place(values, shape, device, dtype, placement);
}

void CheckBinary(const BinaryCase& c, const Tensor& x, const Tensor& y) {
  const Tensor z = c.op(x, y);
  const Shape out = BroadcastShapes("test", x.shape(), y.shape());
  const std::vector<double> a = ValuesOf(x), b = ValuesOf(y);
  std::vector<double> expected(out.numel());
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    expected[i] = c.reference(BroadcastAt(a, x.shape(), out, i),
                              BroadcastAt(b, y.shape(), out, i), x.dtype());
  }
  ASSERT_TRUE(Matches(z, out, c.ResultDType(x.dtype()), expected, c.ulps))
      << c.name << " of a " << x.Describe() << " with strides " << x.strides()
      << " and a " << y.Describe() << " with strides " << y.strides();
  EXPECT_EQ(z.device(), x.device());
}

class BinaryTest : public DeviceTest {};

TEST_P(BinaryTest, BroadcastsBothWays) {
  const std::pair<Shape, Shape> kPairs[] = {
      {{}, {}},         {{1}, {1}},       {{1003}, {1003}},
      {{0}, {0}},       {{0, 3}, {1, 3}}, {{5, 7}, {7}},
      {{7}, {5, 7}},    {{5, 1}, {1, 7}}, {{}, {2, 3, 4}},
      {{2, 3, 4}, {1}}, {{2, 3}, {}},     {{2, 1, 4, 1}, {3, 1, 5}},
      {{4, 0}, {1}},    {{31}, {2, 1}},   {{2, 1, 1, 1, 1, 1, 1, 3}, {2, 1}}};
  for (const BinaryCase& c : kBinaryCases) {
    for (const DType dtype : kAllDTypes) {
      for (const auto& [a, b] : kPairs) {
        CheckBinary(c, FirstOperand(c, a, device(), dtype),
                    SecondOperand(c, b, device(), dtype));
      }
    }
  }
}

TEST_P(BinaryTest, OperandsLieInMemoryInAnyWay) {
  for (const BinaryCase& c : kBinaryCases) {
    for (const DType dtype : kAllDTypes) {
      for (const Placement p : kPlacements) {
        for (const Placement q : kPlacements) {
          CheckBinary(c, FirstOperand(c, {5, 7}, device(), dtype, p),
                      SecondOperand(c, {5, 7}, device(), dtype, q));
        }
        // Broadcast as well.
        CheckBinary(c, FirstOperand(c, {3, 1, 2}, device(), dtype, p),
                    SecondOperand(c, {4, 1}, device(), dtype, p));
      }
    }
  }
}

TEST_P(BinaryTest, LargeTensors) {
  for (const BinaryCase& c : kBinaryCases) {
    for (const DType dtype : {DType::kFloat32, DType::kUInt8}) {
      CheckBinary(c, FirstOperand(c, {100003}, device(), dtype),
                  SecondOperand(c, {100003}, device(), dtype));
    }
  }
  for (int i = 0; i < 3; ++i) {
    const BinaryCase& c = kBinaryCases[i];
    CheckBinary(c,
                FirstOperand(c, {331, 317}, device(), DType::kFloat32,
                             Placement::kTransposed),
                SecondOperand(c, {331, 317}, device(), DType::kFloat32));
    CheckBinary(c, FirstOperand(c, {331, 317}, device(), DType::kFloat64),
                SecondOperand(c, {317}, device(), DType::kFloat64));
    CheckBinary(c, FirstOperand(c, {331, 1}, device(), DType::kInt64),
                SecondOperand(c, {317}, device(), DType::kInt64));
  }
}

TEST_P(BinaryTest, ScalarsOnEitherSide) {
  for (const BinaryCase& c : kBinaryCases) {
    for (const DType dtype : kAllDTypes) {
      for (const double scalar : {2., 3., 0.1}) {
        if (!IsFloatingPoint(dtype) && scalar == 0.1) continue;
        const double s = RoundTo(dtype, scalar);
        for (const Placement placement : kPlacements) {
          const Tensor x = FirstOperand(c, {3, 11}, device(), dtype, placement);
          EXPECT_TRUE(Matches(
              c.op(x, scalar), x.shape(), c.ResultDType(dtype),
              Map(x, [&](double a) { return c.reference(a, s, dtype); }),
              c.ulps))
              << c.name << " " << PlacementName(placement);
          const Tensor y =
              SecondOperand(c, {3, 11}, device(), dtype, placement);
          EXPECT_TRUE(Matches(
              c.op(scalar, y), y.shape(), c.ResultDType(dtype),
              Map(y, [&](double b) { return c.reference(s, b, dtype); }),
              c.ulps))
              << c.name << " " << PlacementName(placement);
        }
      }
      const Tensor none = FirstOperand(c, {0, 2}, device(), dtype);
      EXPECT_TRUE(Matches(c.op(none, 1), {0, 2}, c.ResultDType(dtype), {}));
    }
  }
}

TEST_P(BinaryTest, NanInfinityAndTheEdgesOfTheRange) {
  for (const BinaryCase& c : kBinaryCases) {
    for (const DType dtype : kFloatDTypes) {
      const bool single = dtype == DType::kFloat32;
      const double largest = single ? std::numeric_limits<float>::max()
                                    : std::numeric_limits<double>::max();
      const std::vector<double> special = {
          kNan, kInfinity, -kInfinity, 0, -0., 1, -1, 2.5, -2.5, largest};
      const Shape column = {10, 1}, row = {10};
      CheckBinary(c, Place(special, column, device(), dtype),
                  Place(special, row, device(), dtype));
      const Tensor x = Place(special, row, device(), dtype);
      for (const double scalar : special) {
        EXPECT_TRUE(Matches(
            c.op(x, scalar), row, c.ResultDType(dtype),
            Map(x, [&](double a) { return c.reference(a, scalar, dtype); }),
            c.ulps))
            << c.name << " " << scalar << " " << DTypeName(dtype);
        EXPECT_TRUE(Matches(
            c.op(scalar, x), row, c.ResultDType(dtype),
            Map(x, [&](double b) { return c.reference(scalar, b, dtype); }),
            c.ulps))
            << scalar << " " << c.name << " " << DTypeName(dtype);
      }
    }
  }
}

TEST_P(BinaryTest, PowersThatAreOftenTaken) {
  for (const DType dtype : kFloatDTypes) {
    const Tensor x = FirstOperand(kBinaryCases[5], {3, 5}, device(), dtype,
                                  Placement::kTransposed);
    for (const double power : {-2., -1., -0.5, 0., 0.5, 1., 2., 3., 4., 2.5}) {
      EXPECT_TRUE(
          Matches(Pow(x, power), {3, 5}, dtype,
                  Map(x, [power](double a) { return std::pow(a, power); }), 2))
          << power;
    }
    const Tensor y = RandomTensor({9}, device(), dtype);
    const auto cube = [](double a) { return a * a * a; };
    EXPECT_TRUE(Matches(Pow(y, 3), {9}, dtype, Map(y, cube), 2));
  }
}

TEST_P(BinaryTest, AScalarExponentOfFloat32KeepsItsDigits) {
  const auto power = [&](float x, double exponent) {
    return Item(Pow(FromVector<float>({x}, {}, device()), exponent));
  };
  EXPECT_NEAR(power(1e-8f, -3.72606296886203), 6.434336e29, 1e23);
  EXPECT_EQ(power(-3, 16777217), -kInfinity);
  EXPECT_TRUE(std::isnan(power(-3, 2.2e-308)));
}

TEST_P(BinaryTest, FloorDivideIsExactWhereTheQuotientIsNot) {
  const Tensor x =
      Place({6, -6, 7, -7, 1, 5.5}, {6}, device(), DType::kFloat64);
  EXPECT_THAT(ToVector<double>(FloorDivide(x, 0.1)),
              ElementsAre(59, -60, 69, -70, 9, 54));
  const Tensor n = Place({7, -7, 8, -8, 0}, {5}, device(), DType::kInt64);
  EXPECT_THAT(ToVector<std::int64_t>(FloorDivide(n, 4)),
              ElementsAre(1, -2, 2, -2, 0));
  EXPECT_THAT(ToVector<std::int64_t>(FloorDivide(n, -4)),
              ElementsAre(-2, 1, -2, 2, 0));
}

// Integers: exact, beyond what a double can hold.
constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST_P(BinaryTest, LargeIntegersAreExact) {
  const Tensor x = FromVector<std::int64_t>({kBig, -kBig, 3}, {3}, device());
  EXPECT_THAT(ToVector<std::int64_t>(x + 2),
              ElementsAre(kBig + 2, 2 - kBig, 5));
  EXPECT_THAT(ToVector<std::int64_t>(x + kBig),
              ElementsAre(2 * kBig, 0, kBig + 3));
  EXPECT_THAT(ToVector<std::int64_t>(kBig - x),
              ElementsAre(0, 2 * kBig, kBig - 3));
  EXPECT_THAT(ToVector<std::int64_t>(x * 3),
              ElementsAre(3 * kBig, -3 * kBig, 9));
  EXPECT_THAT(ToVector<std::int64_t>(FloorDivide(x, 2)),
              ElementsAre(kBig / 2, -kBig / 2 - 1, 1));
  EXPECT_THAT(ToVector<std::uint8_t>(x == kBig), ElementsAre(1, 0, 0));
  EXPECT_THAT(ToVector<std::uint8_t>(x > kBig - 1), ElementsAre(1, 0, 0));
  EXPECT_THAT(ToVector<std::uint8_t>(kBig + 1 > x), ElementsAre(1, 1, 1));
  EXPECT_THAT(ToVector<std::int64_t>(Maximum(x, kBig - 1)),
              ElementsAre(kBig, kBig - 1, kBig - 1));
  EXPECT_THAT(ToVector<std::int64_t>(Pow(x, 1)), ElementsAre(kBig, -kBig, 3));
  const Tensor n = FromVector<std::int64_t>({39, 0}, {2}, device());
  EXPECT_THAT(ToVector<std::int64_t>(Pow(3, n)),
              ElementsAre(4052555153018976267, 1));
  EXPECT_THAT(ToVector<std::int64_t>(Where(x > 0, kBig + 4, x)),
              ElementsAre(kBig + 4, -kBig, kBig + 4));
}

TEST_P(BinaryTest, IntegersWrapAround) {
  const Tensor bytes = FromVector<std::uint8_t>({0, 1, 255}, {3}, device());
  EXPECT_THAT(ToVector<std::uint8_t>(bytes - 2), ElementsAre(254, 255, 253));
  EXPECT_THAT(ToVector<std::uint8_t>(-bytes), ElementsAre(0, 255, 1));
  EXPECT_THAT(ToVector<std::uint8_t>(bytes + 254), ElementsAre(254, 255, 253));
  EXPECT_THAT(ToVector<std::uint8_t>(bytes * 3), ElementsAre(0, 3, 253));
  EXPECT_THAT(ToVector<std::uint8_t>(Square(bytes)), ElementsAre(0, 1, 1));
  const Tensor x = FromVector<std::int64_t>({kMin, kMax, -1}, {3}, device());
  EXPECT_THAT(ToVector<std::int64_t>(-x), ElementsAre(kMin, -kMax, 1));
  EXPECT_THAT(ToVector<std::int64_t>(Abs(x)), ElementsAre(kMin, kMax, 1));
  EXPECT_THAT(ToVector<std::int64_t>(x - 1), ElementsAre(kMax, kMax - 1, -2));
  EXPECT_THAT(ToVector<std::int64_t>(x + x), ElementsAre(0, -2, -2));
  EXPECT_THAT(ToVector<std::int64_t>(FloorDivide(x, -1)),
              ElementsAre(kMin, -kMax, 1));
  EXPECT_THAT(ToVector<std::int64_t>(Square(x)), ElementsAre(0, 1, 1));
}

// ---- Where.

TEST_P(BinaryTest, WhereAgainstTheLoop) {
  const auto check = [](const Tensor& condition, const Tensor& a,
                        const Tensor& b) {
    const Shape out =
        BroadcastShapes("test", condition.shape(),
                        BroadcastShapes("test", a.shape(), b.shape()));
    const std::vector<double> c = ValuesOf(condition), x = ValuesOf(a),
                              y = ValuesOf(b);
    std::vector<double> expected(out.numel());
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      expected[i] = BroadcastAt(c, condition.shape(), out, i) != 0
                        ? BroadcastAt(x, a.shape(), out, i)
                        : BroadcastAt(y, b.shape(), out, i);
    }
    EXPECT_TRUE(Matches(Where(condition, a, b), out, a.dtype(), expected));
  };
  const auto bits = [this](const Shape& shape, Placement placement) {
    std::vector<double> values = RandomValues(shape.numel(), DType::kUInt8);
    // Any number but 0 is true.
    for (double& value : values) value = value < 128 ? 0 : value;
    return Place(values, shape, device(), DType::kUInt8, placement);
  };
  for (const DType dtype : kAllDTypes) {
    for (const Placement p : kPlacements) {
      for (const Placement q : kPlacements) {
        const Tensor a = RandomTensor({5, 7}, device(), dtype, q);
        const Tensor b = RandomTensor({5, 7}, device(), dtype, p);
        check(bits({5, 7}, p), a, b);
        check(bits({5, 1}, p), a, b);
        check(bits({7}, p), RandomTensor({5, 1}, device(), dtype, q), b);
        const Tensor condition = bits({5, 7}, q);
        const std::vector<double> c = ValuesOf(condition), x = ValuesOf(a);
        std::vector<double> first(35), second(35);
        for (int i = 0; i < 35; ++i) {
          first[i] = c[i] != 0 ? 7 : x[i];
          second[i] = c[i] != 0 ? x[i] : 7;
        }
        EXPECT_TRUE(Matches(Where(condition, 7, a), {5, 7}, dtype, first));
        EXPECT_TRUE(Matches(Where(condition, a, 7), {5, 7}, dtype, second));
      }
    }
    check(bits({}, {}), RandomTensor({}, device(), dtype),
          RandomTensor({}, device(), dtype));
    check(bits({0, 3}, {}), RandomTensor({1, 3}, device(), dtype),
          RandomTensor({}, device(), dtype));
    check(bits({3, 1}, {}), RandomTensor({}, device(), dtype),
          RandomTensor({0}, device(), dtype));
    check(bits({100003}, {}), RandomTensor({100003}, device(), dtype),
          RandomTensor({1}, device(), dtype));
  }
  // Elements that are not chosen do not matter, not even NaN.
  const Tensor condition = FromVector<std::uint8_t>({1, 0}, {2}, device());
  EXPECT_TRUE(
      Matches(Where(condition, 1., Place({kNan, kInfinity}, {2}, device())),
              {2}, DType::kFloat32, {1, kInfinity}));
}

TEST_P(BinaryTest, FillsAnExpandedTensor) {
  const Tensor x = Zeros({2, 1}, device());
  FillInPlace(Expand(x, {2, 3}), 5);
  EXPECT_TRUE(Matches(x, {2, 1}, DType::kFloat32, {5, 5}));
}

INSTANTIATE_FOR_ALL_DEVICES(BinaryTest);

}  // namespace
}  // namespace d2l
