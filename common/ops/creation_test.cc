// Functions that create tensors.

#include "common/ops/creation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "common/device/device_table.h"
#include "common/ops/read.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Lt;

const Shape kShapes[] = {{}, {1}, {17}, {2, 3}, {2, 0, 3}, {3, 1, 2, 2}};

class CreationTest : public DeviceTest {};

TEST_P(CreationTest, FilledTensors) {
  for (const DType dtype : kAllDTypes) {
    for (const Shape& shape : kShapes) {
      const auto all = [&shape](double value) {
        return std::vector<double>(shape.numel(), value);
      };
      EXPECT_TRUE(Matches(Zeros(shape, device(), dtype), shape, dtype, all(0)));
      EXPECT_TRUE(Matches(Ones(shape, device(), dtype), shape, dtype, all(1)));
      EXPECT_TRUE(
          Matches(Full(shape, 200, device(), dtype), shape, dtype, all(200)));
      const Tensor empty = Empty(shape, device(), dtype);
      EXPECT_EQ(empty.shape(), shape);
      EXPECT_EQ(empty.dtype(), dtype);
      EXPECT_EQ(empty.device(), device());
      EXPECT_TRUE(empty.is_contiguous());
      EXPECT_EQ(ValuesOf(empty).size(),
                static_cast<std::size_t>(shape.numel()));
    }
    EXPECT_EQ(ValuesOf(Full({100003}, 7, device(), dtype)),
              std::vector<double>(100003, 7));
  }
}

TEST_P(CreationTest, FullOfSpecialNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;
  for (const DType dtype : kFloatDTypes) {
    for (const double value : {kInfinity, -kInfinity, kNan, 0.1, -1e-30}) {
      EXPECT_TRUE(Matches(Full({2}, value, device(), dtype), {2}, dtype,
                          {value, value}));
    }
  }
  EXPECT_THAT(ToVector<std::int64_t>(Full({2}, kBig, device(), DType::kInt64)),
              ElementsAre(kBig, kBig));
  EXPECT_EQ(ToVector<double>(Full({}, 0.1, device(), DType::kFloat64))[0], 0.1);
}

TEST_P(CreationTest, FromVectorCopiesAtOnce) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Tensor x = FromVector(values, {2, 3}, device());
  std::fill(values.begin(), values.end(), 9.f);
  EXPECT_THAT(ToVector<float>(x), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(x.dtype(), DType::kFloat32);
  EXPECT_EQ(x.device(), device());
  EXPECT_EQ(FromVector<double>({1}, {}, device()).dtype(), DType::kFloat64);
  EXPECT_EQ(ToVector<double>(FromVector<double>({}, {0, 2}, device())),
            std::vector<double>());
  std::vector<std::int64_t> large(100003);
  for (std::size_t i = 0; i < large.size(); ++i) {
    large[i] = std::numeric_limits<std::int64_t>::min() + 7 * i * i;
  }
  EXPECT_EQ(ToVector<std::int64_t>(FromVector(large, {100003}, device())),
            large);
  std::vector<std::uint8_t> bytes = {0, 1, 255};
  EXPECT_EQ(ToVector<std::uint8_t>(FromVector(bytes, {3, 1}, device())), bytes);
}

TEST_P(CreationTest, FromVectorKeepsItsNumbersWhileTheDeviceIsBusy) {
  std::vector<Tensor> tensors;
  const auto fill = [&] {
    for (int i = 0; i < 50; ++i) {
      tensors.push_back(
          FromVector(std::vector<float>(257, i), {257}, device()));
    }
  };
  RunOnce(fill);
  tensors.clear();
  {
    std::vector<StorageRef> staging(50);
    for (StorageRef& one : staging) {
      one = PinnedMemory(device()).AllocatePinned(257 * sizeof(float));
    }
  }
  StreamStall hold(CurrentStream(device()));
  // Their staging buffers must not be handed out twice.
  fill();
  hold.Release();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(ValuesOf(tensors[i]), std::vector<double>(257, i));
  }
}

TEST_P(CreationTest, ArangeAgainstTheLoop) {
  struct {
    Scalar start, end, step;
  } const kCases[] = {{0, 10, 1},     {3, 10, 2},      {3, 11, 2},
                      {10, 3, -2},    {5, 5, 1},       {5, 5, -1},
                      {0, 1, 2},      {0, 1, 0.1},     {1, 0, -0.25},
                      {-1.5, 2, 0.5}, {0.1, 1e3, 0.3}, {0, 100003, 1}};
  for (const auto& c : kCases) {
    const double start = c.start.To<double>(), end = c.end.To<double>(),
                 step = c.step.To<double>();
    std::vector<double> expected;
    for (std::int64_t i = 0; i < std::ceil((end - start) / step); ++i) {
      expected.push_back(start + i * step);
    }
    const Shape shape = {static_cast<std::int64_t>(expected.size())};
    const bool integers = c.start.is_integer() && c.step.is_integer();
    const bool bytes = start >= 0 && end >= 0 && start < 256 && end <= 256;
    for (const DType dtype : kAllDTypes) {
      if (!IsFloatingPoint(dtype) && !integers) continue;
      if (dtype == DType::kUInt8 && !bytes) continue;
      EXPECT_TRUE(Matches(Arange(c.start, c.end, c.step, device(), dtype),
                          shape, dtype, expected))
          << start << " " << end << " " << step;
    }
  }
  EXPECT_TRUE(Matches(Arange(3, device()), {3}, DType::kFloat32, {0, 1, 2}));
  EXPECT_TRUE(Matches(Arange(0, device()), {0}, DType::kFloat32, {}));
  EXPECT_TRUE(Matches(Arange(0, 256, 1, device(), DType::kUInt8), {256},
                      DType::kUInt8, ValuesOf(Arange(256, device()))));
  EXPECT_THAT(
      ToVector<std::uint8_t>(Arange(2, -1, -1, device(), DType::kUInt8)),
      ElementsAre(2, 1, 0));
}

TEST_P(CreationTest, ArangeOfLargeIntegersIsExact) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;
  const auto arange = [this](Scalar start, Scalar end, Scalar step) {
    return ToVector<std::int64_t>(
        Arange(start, end, step, device(), DType::kInt64));
  };
  EXPECT_THAT(arange(kBig, kBig + 5, 2), ElementsAre(kBig, kBig + 2, kBig + 4));
  EXPECT_THAT(arange(kMin, kMax, std::int64_t{1} << 62),
              ElementsAre(kMin, kMin / 2, 0, kMax / 2 + 1));
  EXPECT_THAT(arange(kMax, kMin, kMin), ElementsAre(kMax, -1));
}

TEST_P(CreationTest, EyeAgainstTheLoop) {
  for (const DType dtype : kAllDTypes) {
    for (const Shape& shape :
         {Shape{3, 3}, Shape{1, 1}, Shape{2, 5}, Shape{5, 2}, Shape{0, 3},
          Shape{3, 0}, Shape{317, 331}}) {
      std::vector<double> expected(shape.numel());
      for (std::int64_t i = 0; i < std::min(shape[0], shape[1]); ++i) {
        expected[i * shape[1] + i] = 1;
      }
      EXPECT_TRUE(Matches(Eye(shape[0], shape[1], device(), dtype), shape,
                          dtype, expected));
      if (shape[0] != shape[1]) continue;
      EXPECT_TRUE(
          Matches(Eye(shape[0], device(), dtype), shape, dtype, expected));
    }
  }
}

TEST_P(CreationTest, LikeAnother) {
  for (const DType dtype : kAllDTypes) {
    const Tensor x =
        RandomTensor({3, 5}, device(), dtype, Placement::kTransposed);
    EXPECT_TRUE(
        Matches(ZerosLike(x), {3, 5}, dtype, std::vector<double>(15, 0)));
    EXPECT_TRUE(
        Matches(OnesLike(x), {3, 5}, dtype, std::vector<double>(15, 1)));
    EXPECT_TRUE(
        Matches(FullLike(x, 4), {3, 5}, dtype, std::vector<double>(15, 4)));
    const Tensor empty = EmptyLike(x);
    EXPECT_EQ(empty.shape(), x.shape());
    EXPECT_EQ(empty.dtype(), dtype);
    EXPECT_EQ(empty.device(), device());
    EXPECT_NE(empty.storage()->id(), x.storage()->id());
    if (!IsFloatingPoint(dtype)) continue;
    ManualSeed(5);
    const Tensor uniform = RandLike(x), normal = RandnLike(x);
    ManualSeed(5);
    EXPECT_TRUE(Matches(uniform, {3, 5}, dtype,
                        ValuesOf(Rand({3, 5}, device(), dtype))));
    EXPECT_TRUE(Matches(normal, {3, 5}, dtype,
                        ValuesOf(Randn({3, 5}, device(), dtype))));
  }
}

// ---- Random numbers.

struct Moments {
  double mean = 0, variance = 0;
};
Moments MomentsOf(const std::vector<double>& values) {
  Moments moments;
  for (const double value : values) moments.mean += value / values.size();
  for (const double value : values) {
    moments.variance += std::pow(value - moments.mean, 2) / values.size();
  }
  return moments;
}

constexpr std::int64_t kMany = 100003;

TEST_P(CreationTest, RandIsUniform) {
  for (const DType dtype : kFloatDTypes) {
    ManualSeed(7);
    const std::vector<double> values = ValuesOf(Rand({kMany}, device(), dtype));
    EXPECT_THAT(values, Each(AllOf(Ge(0), Lt(1))));
    const Moments moments = MomentsOf(values);
    // Five standard errors.
    EXPECT_NEAR(moments.mean, 0.5, 5 * std::sqrt(1 / 12. / kMany));
    EXPECT_NEAR(moments.variance, 1 / 12., 5 * std::sqrt(1 / 180. / kMany));
    std::vector<int> tenths(10);
    for (const double value : values) ++tenths[static_cast<int>(value * 10)];
    EXPECT_THAT(tenths,
                Each(AllOf(Ge(kMany / 10 - 5 * 95), Le(kMany / 10 + 5 * 95))));
  }
}

TEST_P(CreationTest, RandnIsStandardNormal) {
  for (const DType dtype : kFloatDTypes) {
    ManualSeed(7);
    const std::vector<double> values =
        ValuesOf(Randn({kMany}, device(), dtype));
    EXPECT_THAT(values, Each(AllOf(Ge(-9), Le(9))));
    const Moments moments = MomentsOf(values);
    EXPECT_NEAR(moments.mean, 0, 5 / std::sqrt(kMany));
    EXPECT_NEAR(moments.variance, 1, 5 * std::sqrt(2. / kMany));
    const auto within =
        std::count_if(values.begin(), values.end(),
                      [](double z) { return std::fabs(z) < 1; });
    EXPECT_NEAR(within / double{kMany}, 0.682689, 5 * std::sqrt(0.217 / kMany));
  }
}

TEST_P(CreationTest, RandIntIsUniformWithinItsBounds) {
  for (const DType dtype : kAllDTypes) {
    ManualSeed(7);
    const std::vector<double> values =
        ValuesOf(RandInt(3, 13, {kMany}, device(), dtype));
    std::vector<int> counts(10);
    for (const double value : values) {
      ASSERT_EQ(value, std::floor(value));
      ASSERT_GE(value, 3);
      ASSERT_LT(value, 13);
      ++counts[static_cast<int>(value) - 3];
    }
    EXPECT_THAT(counts,
                Each(AllOf(Ge(kMany / 10 - 5 * 95), Le(kMany / 10 + 5 * 95))));
  }
  EXPECT_THAT(ToVector<std::int64_t>(RandInt(-5, -4, {3}, device())),
              ElementsAre(-5, -5, -5));
  // The largest integers that float32 has without a gap.
  const std::vector<double> last = ValuesOf(
      RandInt((1 << 24) - 2, (1 << 24) + 1, {1001}, device(), DType::kFloat32));
  EXPECT_EQ(std::set<double>(last.begin(), last.end()),
            (std::set<double>{0x1p24 - 2, 0x1p24 - 1, 0x1p24}));
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> wide =
      ToVector<std::int64_t>(RandInt(kMin, kMax, {1001}, device()));
  const Moments moments = MomentsOf({wide.begin(), wide.end()});
  EXPECT_NEAR(moments.mean * 0x1p-64, 0, 5 * std::sqrt(1 / 12. / 1001));
  EXPECT_EQ(std::set<std::int64_t>(wide.begin(), wide.end()).size(), 1001u);
}

// Draws n numbers, and those that follow.
template <typename Draw>
void CheckSequence(Draw draw, int per_block) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 1001}) {
    ManualSeed(42);
    const std::vector<double> first = ValuesOf(draw({n}));
    const std::vector<double> second = ValuesOf(draw({7}));
    ManualSeed(42);
    const std::int64_t used = (n + per_block - 1) / per_block * per_block;
    const std::vector<double> all = ValuesOf(draw({used + 7}));
    EXPECT_EQ(first, std::vector<double>(all.begin(), all.begin() + n));
    EXPECT_EQ(second, std::vector<double>(all.begin() + used, all.end()));
    EXPECT_NE(first, second);
  }
}

TEST_P(CreationTest, ACallTakesWholeBlocksOfTheSequence) {
  const Device d = device();
  using S = const Shape&;
  CheckSequence([d](S s) { return Rand(s, d); }, 4);
  CheckSequence([d](S s) { return Randn(s, d); }, 4);
  CheckSequence([d](S s) { return Rand(s, d, DType::kFloat64); }, 2);
  CheckSequence([d](S s) { return Randn(s, d, DType::kFloat64); }, 2);
  CheckSequence([d](S s) { return RandInt(0, 1 << 30, s, d); }, 4);
  CheckSequence([d](S s) { return RandInt(0, 1 << 24, s, d, DType::kFloat64); },
                4);
  CheckSequence([d](S s) { return RandInt(0, std::int64_t{1} << 50, s, d); },
                2);
}

TEST_P(CreationTest, NoNumbersTakeNothingFromTheSequence) {
  ManualSeed(3);
  const std::vector<double> expected = ValuesOf(Rand({4}, device()));
  ManualSeed(3);
  EXPECT_EQ(ValuesOf(Rand({0, 4}, device())), std::vector<double>());
  EXPECT_EQ(ValuesOf(Rand({4}, device())), expected);
}

TEST_P(CreationTest, AGeneratorGoesOnFromWhereItStood) {
  ManualSeed(3);
  Rand({5}, device());
  const GeneratorState state = GetGeneratorState(device());
  EXPECT_EQ(state.seed, 3u);
  const std::vector<double> expected = ValuesOf(Randn({7}, device()));
  EXPECT_GT(GetGeneratorState(device()).offset, state.offset);
  ManualSeed(4);
  SetGeneratorState(state, device());
  EXPECT_EQ(ValuesOf(Randn({7}, device())), expected);
}

TEST_P(CreationTest, ASeedGivesTheSameNumbersOnEveryDevice) {
  const auto draw = [](Device d) {
    return std::vector<std::vector<double>>{
        ValuesOf(Rand({1001}, d)), ValuesOf(Randn({2, 3}, d)),
        ValuesOf(Rand({5}, d, DType::kFloat64)),
        ValuesOf(RandInt(0, 9, {5}, d))};
  };
  ManualSeed(42);
  const auto expected = draw(device());
  ManualSeed(42);
  for (const Device other : AllDevices()) {
    if (other == device()) continue;
    EXPECT_EQ(draw(other), expected) << other;
  }
  ManualSeed(43);
  const std::vector<double> one = ValuesOf(Rand({9}, device()));
  ManualSeed(44);
  EXPECT_NE(ValuesOf(Rand({9}, device())), one);
}

TEST_P(CreationTest, SeedingOneDeviceLeavesTheOthersAlone) {
  const Device other = OtherDevice(device());
  if (other == device()) GTEST_SKIP() << "needs two devices";
  ManualSeed(42);
  const std::vector<double> first = ValuesOf(Rand({9}, device()));
  const std::vector<double> second = ValuesOf(Rand({9}, device()));
  EXPECT_EQ(ValuesOf(Rand({9}, other)), first);
  ManualSeed(42, device());
  EXPECT_EQ(ValuesOf(Rand({9}, device())), first);
  EXPECT_EQ(ValuesOf(Rand({9}, other)), second);
  EXPECT_THAT(ThrownText([] { ManualSeed(1, Device(DeviceType::kCpu, 63)); }),
              HasSubstr("[device] cpu:63 is not in the device table"));
}

INSTANTIATE_FOR_ALL_DEVICES(CreationTest);

}  // namespace
}  // namespace d2l
