#include "common/tensor/scalar.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/tensor/dtype.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Scalar, KeepsIntegersExactly) {
  for (const std::int64_t value :
       {kMin, -kBig, std::int64_t{-1}, std::int64_t{0}, kBig, kMax}) {
    const Scalar scalar = value;
    EXPECT_TRUE(scalar.is_integer());
    EXPECT_EQ(scalar.To<std::int64_t>(), value);
    EXPECT_EQ(scalar.To<double>(), static_cast<double>(value));
    EXPECT_EQ(scalar.To<float>(), static_cast<float>(value));
  }
  EXPECT_EQ(Scalar(kBig).ToString(), "9007199254740993");
  EXPECT_EQ(Scalar(kMin).ToString(), "-9223372036854775808");
}

TEST(Scalar, TakesAllKindsOfNumbers) {
  EXPECT_EQ(Scalar().To<int>(), 0);
  EXPECT_TRUE(Scalar().is_integer());
  EXPECT_TRUE(Scalar(true).is_integer());
  EXPECT_EQ(Scalar(true).To<float>(), 1);
  EXPECT_EQ(Scalar(static_cast<signed char>(-3)).To<std::int64_t>(), -3);
  EXPECT_EQ(Scalar(std::uint8_t{200}).To<std::int64_t>(), 200);
  EXPECT_EQ(Scalar(std::uint32_t{4000000000}).To<std::int64_t>(), 4000000000);
  EXPECT_FALSE(Scalar(2.).is_integer());
  EXPECT_EQ(Scalar(0.1f).To<float>(), 0.1f);
  EXPECT_EQ(Scalar(0.1).To<double>(), 0.1);
}

TEST(Scalar, UnsignedNumbersBeyondInt64AreTheNearestDouble) {
  const Scalar last = static_cast<std::uint64_t>(kMax);
  EXPECT_TRUE(last.is_integer());
  EXPECT_EQ(last.To<std::int64_t>(), kMax);
  const Scalar first = static_cast<std::uint64_t>(kMax) + 1;
  EXPECT_FALSE(first.is_integer());
  EXPECT_EQ(first.To<double>(), 0x1p63);
  EXPECT_FALSE(first.FitsIn(DType::kInt64));
  EXPECT_EQ(Scalar(~std::uint64_t{0}).To<double>(), 0x1p64);
}

TEST(Scalar, FitsFloatingPointAlways) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    EXPECT_TRUE(Scalar(kBig).FitsIn(dtype));
    EXPECT_TRUE(Scalar(0.1).FitsIn(dtype));
    EXPECT_TRUE(Scalar(1e300).FitsIn(dtype));
    EXPECT_TRUE(Scalar(kNan).FitsIn(dtype));
    EXPECT_TRUE(Scalar(-kInfinity).FitsIn(dtype));
  }
}

TEST(Scalar, FitsInt64IfWholeAndInRange) {
  EXPECT_TRUE(Scalar(kMin).FitsIn(DType::kInt64));
  EXPECT_TRUE(Scalar(kMax).FitsIn(DType::kInt64));
  EXPECT_TRUE(Scalar(3.).FitsIn(DType::kInt64));
  EXPECT_TRUE(Scalar(-0.).FitsIn(DType::kInt64));
  EXPECT_TRUE(Scalar(-0x1p63).FitsIn(DType::kInt64));
  EXPECT_EQ(Scalar(-0x1p63).To<std::int64_t>(), kMin);
  EXPECT_TRUE(Scalar(std::nextafter(0x1p63, 0)).FitsIn(DType::kInt64));
  for (const double value : {0.5, -1.5, 0x1p63, -0x1.0000000000001p63, 1e300,
                             kInfinity, -kInfinity, kNan}) {
    EXPECT_FALSE(Scalar(value).FitsIn(DType::kInt64)) << value;
  }
}

TEST(Scalar, FitsUInt8IfWholeAndInRange) {
  for (const int value : {0, 1, 255}) {
    EXPECT_TRUE(Scalar(value).FitsIn(DType::kUInt8)) << value;
    EXPECT_TRUE(Scalar(static_cast<double>(value)).FitsIn(DType::kUInt8));
  }
  EXPECT_FALSE(Scalar(-1).FitsIn(DType::kUInt8));
  EXPECT_FALSE(Scalar(256).FitsIn(DType::kUInt8));
  EXPECT_FALSE(Scalar(kMin).FitsIn(DType::kUInt8));
  for (const double value :
       {-1., -0.5, 0.5, 254.5, 255.5, 256., kInfinity, kNan}) {
    EXPECT_FALSE(Scalar(value).FitsIn(DType::kUInt8)) << value;
  }
}

TEST(Scalar, IsATriviallyCopyableValue) {
  EXPECT_TRUE(std::is_trivially_copyable_v<Scalar>);
}

TEST(Scalar, TextIsExactAndReadsBack) {
  EXPECT_EQ(Scalar(2).ToString(), "2");
  EXPECT_EQ(Scalar(2.0).ToString(), "2.0");
  EXPECT_EQ(Scalar(-0.0).ToString(), "-0.0");
  EXPECT_EQ(Scalar(0.1).ToString(), "0.1");
  EXPECT_EQ(Scalar(1e300).ToString(), "1e+300");
  EXPECT_EQ(Scalar(-kInfinity).ToString(), "-inf");
  for (const Scalar scalar :
       {Scalar(2), Scalar(2.0), Scalar(-0.0), Scalar(0.1), Scalar(0.1f),
        Scalar(1e300), Scalar(5e-324), Scalar(kInfinity), Scalar(-kInfinity),
        Scalar(kMin), Scalar(kMax), Scalar(0x1p63), Scalar(-1e22)}) {
    const auto parsed = Scalar::Parse(scalar.ToString());
    ASSERT_TRUE(parsed.has_value()) << scalar.ToString();
    EXPECT_EQ(parsed->is_integer(), scalar.is_integer()) << scalar.ToString();
    EXPECT_EQ(parsed->To<double>(), scalar.To<double>()) << scalar.ToString();
    EXPECT_EQ(std::signbit(parsed->To<double>()),
              std::signbit(scalar.To<double>()));
    if (scalar.is_integer()) {
      EXPECT_EQ(parsed->To<std::int64_t>(), scalar.To<std::int64_t>());
    }
  }
  EXPECT_TRUE(std::isnan(Scalar::Parse(Scalar(kNan).ToString())->To<double>()));
  for (const char* text : {"", " 2", "2 ", "+2", "two", "0x10", "1.5.2", "--1",
                           "9223372036854775808", "1e999"}) {
    EXPECT_FALSE(Scalar::Parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace d2l
