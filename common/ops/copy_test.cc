// Copies within a device, between devices and between dtypes.

#include "common/ops/copy.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/stream.h"
#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/ops/indexing.h"
#include "common/ops/joining.h"
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
constexpr std::int64_t kBig = (std::int64_t{1} << 53) + 1;

// What a number, exact as a double, becomes. (Not for int64 near its ends.)
double Converted(double value, DType from, DType dtype) {
  if (dtype == DType::kFloat32) return static_cast<float>(value);
  if (dtype == DType::kFloat64) return value;
  if (std::isnan(value)) return 0;
  if (dtype == DType::kUInt8 && from == DType::kInt64) {
    return static_cast<std::uint8_t>(static_cast<std::int64_t>(value));
  }
  if (dtype == DType::kUInt8) {
    return value < 0 ? 0 : value > 255 ? 255 : std::trunc(value);
  }
  return std::trunc(value);
}
std::vector<double> Converted(std::vector<double> values, DType from,
                              DType dtype) {
  for (double& value : values) value = Converted(value, from, dtype);
  return values;
}

class CopyTest : public DeviceTest {
 protected:
  Tensor Random(const Shape& shape, DType dtype = DType::kFloat32,
                Placement placement = Placement::kContiguous) const {
    return RandomTensor(shape, device(), dtype, placement);
  }
};

// ---- Within a device.

TEST_P(CopyTest, EveryDTypeToEveryDType) {
  for (const DType from : kAllDTypes) {
    for (const DType to : kAllDTypes) {
      for (const Placement placement : kPlacements) {
        for (const Shape& shape :
             {Shape{}, Shape{1}, Shape{0, 3}, Shape{1003}, Shape{5, 7}}) {
          const Tensor x = Random(shape, from, placement);
          const Tensor y = To(x, to);
          EXPECT_TRUE(Matches(y, shape, to, Converted(ValuesOf(x), from, to)))
              << "from " << from << " " << PlacementName(placement);
          EXPECT_EQ(y.device(), device());
          if (from == to) {
            EXPECT_EQ(y.id(), x.id());
          } else {
            EXPECT_TRUE(y.is_contiguous());
          }
        }
      }
      const Tensor large = Random({331, 317}, from, Placement::kTransposed);
      EXPECT_TRUE(Matches(To(large, to), {331, 317}, to,
                          Converted(ValuesOf(large), from, to)));
    }
  }
}

TEST_P(CopyTest, NumbersBeyondTheRangeBecomeTheNearest) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<double> values = {kNan,  kInfinity, -kInfinity, 1e30,
                                      -1e30, 0x1p63,    -0x1p63,    2.9,
                                      -2.9,  300,       -0.};
  for (const DType dtype : kFloatDTypes) {
    const Tensor x = Place(values, {11}, device(), dtype);
    EXPECT_THAT(
        ToVector<std::int64_t>(To(x, DType::kInt64)),
        ElementsAre(0, kMax, kMin, kMax, kMin, kMax, kMin, 2, -2, 300, 0));
    EXPECT_THAT(ToVector<std::uint8_t>(To(x, DType::kUInt8)),
                ElementsAre(0, 255, 0, 255, 0, 255, 0, 2, 0, 255, 0));
  }
  const Tensor n = FromVector<std::int64_t>({kMin, kMax, -1, 256, 255, -5, 300},
                                            {7}, device());
  EXPECT_THAT(ToVector<std::uint8_t>(To(n, DType::kUInt8)),
              ElementsAre(0, 255, 255, 0, 255, 251, 44))
      << "integers wrap around";
  EXPECT_TRUE(Matches(To(Place({1e300, -1e300, 1e-300, kNan, kInfinity}, {5},
                               device(), DType::kFloat64),
                         DType::kFloat32),
                      {5}, DType::kFloat32,
                      {kInfinity, -kInfinity, 0, kNan, kInfinity}));
}

TEST_P(CopyTest, LargeIntegersAreRoundedOnce) {
  // Just above halfway between two floats: converted through a double it would
  // be rounded to the other one.
  constexpr std::int64_t kAboveHalf =
      (std::int64_t{1} << 60) + (std::int64_t{1} << 36) + 1;
  const Tensor x = FromVector<std::int64_t>({kBig, kAboveHalf}, {2}, device());
  EXPECT_THAT(
      ToVector<double>(To(x, DType::kFloat64)),
      ElementsAre(static_cast<double>(kBig), static_cast<double>(kAboveHalf)));
  EXPECT_THAT(ToVector<float>(To(x, DType::kFloat32)),
              ElementsAre(static_cast<float>(kBig), 0x1.000002p60f));
  const Tensor same = Clone(x);
  EXPECT_THAT(ToVector<std::int64_t>(same), ElementsAre(kBig, kAboveHalf));
}

TEST_P(CopyTest, ClonesAndContiguousCopies) {
  for (const DType dtype : kAllDTypes) {
    for (const Placement placement : kPlacements) {
      for (const Shape& shape : {Shape{}, Shape{5, 7}, Shape{2, 3, 4}}) {
        const Tensor x = Random(shape, dtype, placement);
        const std::vector<double> values = ValuesOf(x);
        const Tensor clone = Clone(x), contiguous = Contiguous(x);
        EXPECT_TRUE(Matches(clone, shape, dtype, values));
        EXPECT_TRUE(Matches(contiguous, shape, dtype, values));
        EXPECT_TRUE(clone.is_contiguous());
        EXPECT_TRUE(contiguous.is_contiguous());
        EXPECT_NE(clone.storage()->id(), x.storage()->id());
        EXPECT_EQ(contiguous.id() == x.id(), x.is_contiguous());
        FillInPlace(x, 1);
        EXPECT_EQ(ValuesOf(clone), values);
      }
    }
    const Tensor row = Random({7}, dtype);
    EXPECT_TRUE(
        Matches(Clone(Expand(row, {5, 7})), {5, 7}, dtype,
                Pick(row, {5, 7}, [](Position p) { return Position{p[1]}; })));
    // More tiles than a model of a GPU has blocks at once.
    const Tensor many = Random({70, 8, 9}, dtype);
    EXPECT_TRUE(Matches(Clone(Transpose(many, 1, 2)), {70, 9, 8}, dtype,
                        Pick(many, {70, 9, 8}, [](Position p) {
                          return Position{p[0], p[2], p[1]};
                        })));
  }
}

TEST_P(CopyTest, CopyToWritesTheTargetAndNothingElse) {
  for (const Device other : {device(), OtherDevice(device())}) {
    for (const DType from : kAllDTypes) {
      for (const DType to : {DType::kFloat32, DType::kUInt8}) {
        for (const Placement p : kPlacements) {
          const Placement q = kPlacements[(static_cast<int>(p) + 2) % 5];
          for (const Shape& shape :
               {Shape{5, 7}, Shape{7}, Shape{5, 1}, Shape{}, Shape{1, 1}}) {
            const Tensor target = Random({5, 7}, to, p);
            const Tensor memory = MemoryOf(target);
            const Tensor source = RandomTensor(shape, other, from, q);
            const std::vector<double> values =
                Converted(ValuesOf(source), from, to);
            std::vector<double> expected(35);
            for (int i = 0; i < 35; ++i) {
              expected[i] = BroadcastAt(values, shape, {5, 7}, i);
            }
            const std::vector<double> all =
                WithValues(ValuesOf(memory), target, expected);
            const std::uint64_t version = target.version();
            CopyTo(source, target);
            EXPECT_EQ(target.version(), version + 1);
            EXPECT_TRUE(Matches(memory, memory.shape(), to, all))
                << "from " << from << " of " << shape << " on " << other;
          }
        }
      }
    }
    CopyTo(Zeros({0, 3}, other), Zeros({0, 3}, device()));
  }
}

TEST_P(CopyTest, WhatPerhapsOverlapsIsCopiedFirst) {
  const Tensor x = Random({37, 37});
  const std::vector<double> transposed = ValuesOf(T(x));
  CopyTo(T(x), x);
  EXPECT_EQ(ValuesOf(x), transposed);
  CopyTo(x, x);
  EXPECT_EQ(ValuesOf(x), transposed);
  const std::vector<double> shifted = ValuesOf(Slice(x, 1, 0, 36));
  CopyTo(Slice(x, 1, 0, 36), Slice(x, 1, 1, 37));
  EXPECT_EQ(ValuesOf(Slice(x, 1, 1, 37)), shifted);
}

// ---- Between devices.

// For each device, another one of each kind; one with itself if there is only
// one.
using Pair = std::pair<Device, Device>;
std::vector<Pair> PairsOfDevices() {
  const std::vector<Device> devices = AllDevices();
  const auto count = static_cast<int>(devices.size());
  std::vector<Pair> pairs;
  for (int i = 0; i < count; ++i) {
    std::set<DeviceType> seen;
    for (int j = i + 1; j < i + count; ++j) {
      const Device other = devices[j % count];
      if (seen.insert(other.type()).second) {
        pairs.emplace_back(devices[i], other);
      }
    }
  }
  if (pairs.empty()) pairs.emplace_back(devices[0], devices[0]);
  return pairs;
}

class CrossDeviceTest : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    if (other() == device()) GTEST_SKIP() << "needs two devices";
  }
  Device device() const { return GetParam().first; }
  Device other() const { return GetParam().second; }
  Tensor Random(const Shape& shape, DType dtype = DType::kFloat32,
                Placement placement = Placement::kContiguous) const {
    return RandomTensor(shape, device(), dtype, placement);
  }

  // A copy from a CPU device to a GPU makes the caller wait for the CPU
  // device's earlier work (copy.h), so another thread has to release that.
  bool CallerWaitsForSource() const {
    return device().type() == DeviceType::kCpu &&
           other().type() == DeviceType::kCuda;
  }
  std::future<void> ReleaseIfCallerWaits(StreamStall& hold) {
    if (!CallerWaitsForSource()) return {};
    return std::async(std::launch::async, [&hold] { hold.Release(); });
  }
};

TEST_P(CrossDeviceTest, ThereAndBack) {
  for (const DType dtype : kAllDTypes) {
    for (const Placement placement : kPlacements) {
      for (const Shape& shape : {Shape{}, Shape{0, 2}, Shape{5, 7}}) {
        const Tensor x = Random(shape, dtype, placement);
        const Tensor copy = To(x, other());
        EXPECT_EQ(copy.device(), other());
        EXPECT_TRUE(Matches(copy, shape, dtype, ValuesOf(x)));
        EXPECT_NE(copy.id(), x.id());
        const Tensor back = To(copy, device());
        EXPECT_EQ(back.device(), device());
        EXPECT_TRUE(Matches(back, shape, dtype, ValuesOf(x)));
        EXPECT_EQ(To(x, device()).id(), x.id());
      }
    }
    const Tensor large = Random({100003}, dtype);
    EXPECT_EQ(ValuesOf(To(large, other())), ValuesOf(large));
    const Tensor x = Random({5, 7}, dtype, Placement::kTransposed);
    for (const DType to : kAllDTypes) {
      const Tensor y = To(x, other(), to);
      EXPECT_EQ(y.device(), other());
      EXPECT_TRUE(
          Matches(y, {5, 7}, to, Converted(ValuesOf(x), x.dtype(), to)));
    }
  }
}

TEST_P(CrossDeviceTest, TheCopyWaitsForItsSourceByItself) {
  const Tensor x = Random({1003});
  RunOnce([&] { To(x + 1, other()) * 2; });
  StreamStall hold(CurrentStream(device()));
  const Tensor sum = x + 1;
  const auto released = ReleaseIfCallerWaits(hold);
  const Tensor copy = To(sum, other(), /*non_blocking=*/true);
  const Tensor result = copy * 2;
  if (!CallerWaitsForSource()) {
    EXPECT_FALSE(CurrentStream(other()).Query());
  }
  hold.Release();
  EXPECT_TRUE(Matches(result, {1003}, DType::kFloat32, Map(x, [](double a) {
                        return RoundTo(DType::kFloat32, a + 1) * 2;
                      })));
}

TEST_P(CrossDeviceTest, TheSourceMayGoBeforeItIsCopied) {
  Tensor result;
  const auto copy = [&] {
    const Tensor x = Full({1003}, 5, device());
    result = To(x, other(), /*non_blocking=*/true);
  };
  RunOnce([&] {
    const Tensor spare = Full({1003}, 7, device());
    copy();
    result = Tensor();
  });
  StreamStall hold(CurrentStream(other()));
  copy();
  // These must not get its memory yet.
  for (int i = 0; i < 10; ++i) Full({1003}, 7, device());
  hold.Release();
  EXPECT_EQ(ValuesOf(result), std::vector<double>(1003, 5));
}

TEST_P(CrossDeviceTest, TheSourceMayChangeAfterTheCopyWasRequested) {
  Tensor x = Full({1003}, 5, device());
  RunOnce([&] { To(x, other()); });
  StreamStall hold(CurrentStream(other()));
  const Tensor copy = To(x, other(), /*non_blocking=*/true);
  x += 1;
  // Time for the addition, if nothing holds it back.
  for (int i = 0; i < 50 && !CurrentStream(device()).Query(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  hold.Release();
  EXPECT_EQ(ValuesOf(copy), std::vector<double>(1003, 5));
  EXPECT_EQ(ValuesOf(x), std::vector<double>(1003, 6));
}

TEST_P(CrossDeviceTest, AFailureOnTheSourceReachesTheReader) {
  const Tensor x = Random({4});
  const Tensor index = Full({1}, 4, device(), DType::kInt64);
  int line = 0;
  Tensor bad, result;
  const auto copy = [&] {
    result = To(bad, other(), /*non_blocking=*/true) + 1;
  };
  RunOnce([&] {
    // One that does not fail, so that all of it is done.
    bad = IndexSelect(x, 0, Full({1}, 3, device(), DType::kInt64));
    copy();
    bad = result = Tensor();
  });
  {
    StreamStall hold(CurrentStream(device()));
    line = __LINE__ + 1;
    bad = IndexSelect(x, 0, index);
    if (!CallerWaitsForSource()) copy();
  }
  const auto read = [&] {
    if (CallerWaitsForSource()) copy();  // already knows
    ToVector<float>(result);
  };
  try {
    read();
    ADD_FAILURE() << "garbage looked like a result";
  } catch (const AsyncError& error) {
    EXPECT_EQ(error.failure().operation, "index_select");
    EXPECT_EQ(error.failure().requested_at, SourceLocation(__FILE__, line));
    EXPECT_THAT(error.what(), HasSubstr("index 4 at position 0"));
  }
  EXPECT_THROW(read(), AsyncError);
  EXPECT_THROW(Synchronize(device()), AsyncError);
  // The failure may have been reported, depending on when the caller waited.
  if (CallerWaitsForSource()) {
    try {
      Synchronize(other());
    } catch (const AsyncError&) {
    }
  }
  EXPECT_EQ(Item(Ones({}, other())), 1);
  EXPECT_EQ(Item(To(Ones({}, device()), other())), 1);
}

// Whether the event is reached in a few seconds.
bool IsReached(const Event& event) {
  for (int i = 0; i < 5'000 && !event.Query(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return event.Query();
}

TEST_P(CrossDeviceTest, TheSourceWaitsForTheCopyAlone) {
  const Tensor x = Random({1003});
  RunOnce([&] { To(x, other()) * 2; });
  StreamStall hold(CurrentStream(other()));
  const Tensor copy = To(x, other(), /*non_blocking=*/true);
  const Tensor result = copy * 2;
  EXPECT_TRUE(IsReached(CurrentStream(device()).Record()));
  EXPECT_FALSE(CurrentStream(other()).Query());
  hold.Release();
  EXPECT_TRUE(Matches(result, {1003}, DType::kFloat32,
                      Map(x, [](double a) { return a * 2; })));
}

TEST_P(CrossDeviceTest, ACopyIntoATensorWaitsForItsEarlierUses) {
  const Tensor x = Full({1003}, 5, device());
  const Tensor target = Zeros({1003}, other());
  Tensor before;
  const auto use = [&] {
    before = Tensor();  // a stalled GPU has no new memory to give
    before = target + 1;
    CopyTo(x, target, /*non_blocking=*/true);
  };
  RunOnce(use);
  FillInPlace(target, 0);
  {
    StreamStall hold(CurrentStream(other()));
    use();
    FillInPlace(x, 7);
  }
  EXPECT_EQ(ValuesOf(before), std::vector<double>(1003, 1));
  EXPECT_EQ(ValuesOf(target), std::vector<double>(1003, 5));
}

TEST_P(CrossDeviceTest, ACopyWaitsForWhatItsStreamHasWaitedFor) {
  // Between a GPU and a CPU device the source's stream reads (copy.h).
  if (device().type() != other().type()) return;
  Stream& writer = NewStream(device());
  const Tensor x = Full({1003}, 5, device());
  Event written;
  const auto write = [&](double value) {
    const StreamGuard guard(writer);
    FillInPlace(x, value);
    written = writer.Record();
  };
  RunOnce([&] { write(6), CurrentStream(other()).Wait(written); });
  // The second copy gets the memory of this one: a GPU whose stream waits for a
  // stalled one has no new memory to give.
  RunOnce([&] { To(x, other()); });
  StreamStall hold(writer);
  write(7);
  CurrentStream(other()).Wait(written);
  const Tensor copy = To(x, other(), /*non_blocking=*/true);
  hold.Release();
  EXPECT_EQ(ValuesOf(copy), std::vector<double>(1003, 7));
  Synchronize(device());
}

TEST_P(CrossDeviceTest, AReadOfAFailedCopyMendsTheReceiver) {
  if (CallerWaitsForSource()) return;  // the copy throws it in the call
  const Tensor x = Random({4});
  Tensor bad, copy, result;
  const auto request = [&](double index) {
    bad = IndexSelect(x, 0, Full({1}, index, device(), DType::kInt64));
    copy = To(bad, other(), /*non_blocking=*/true);
    result = copy + 1;
  };
  RunOnce([&] { request(3); });
  for (int round = 0; round < 3; ++round) {
    bad = copy = result = Tensor();
    {
      // A stalled GPU has no memory to give, and the request needs some.
      std::optional<StreamStall> hold;
      if (device().type() == DeviceType::kCpu) {
        hold.emplace(CurrentStream(device()));
      }
      request(4);
    }
    // Of the copy or of what is made of it; both stay failed.
    for (const Tensor& read : {round == 0 ? result : copy, result, copy}) {
      EXPECT_THROW(ToVector<float>(read), AsyncError);
      EXPECT_EQ(Item(Ones({}, other())), 1);
    }
    EXPECT_THROW(Synchronize(device()), AsyncError);
    Synchronize(other());  // throws nothing: it is reported
    EXPECT_EQ(Item(To(Ones({}, device()), other())), 1);
  }
}

// Copies among all devices, of tensors that are overwritten, released and
// allocated again while streams are held up, have the values of the same steps
// one after the other.
TEST(CopiesAmongDevices, RandomProgramsHaveTheSerialResult) {
  const std::vector<Device> devices = AllDevices();
  std::mt19937 random(51);
  const auto below = [&random](std::size_t n) { return random() % n; };
  for (int program = 0; program < 200; ++program) {
    std::vector<Tensor> tensors;
    std::vector<double> expected;
    for (const Device device : devices) {
      tensors.push_back(Full({257}, program % 7, device));
      expected.push_back(program % 7);
    }
    // A copy to a GPU may wait for a stalled stream.
    std::unique_ptr<StreamStall> stall;
    if (devices.back().type() == DeviceType::kCpu) {
      stall = std::make_unique<StreamStall>(
          DefaultStream(devices[below(devices.size())]));
    }
    for (int step = 0; step < 40; ++step) {
      if (step == 30) stall.reset();
      const std::size_t a = below(tensors.size()), b = below(tensors.size());
      const Device to = devices[below(devices.size())];
      switch (below(4)) {
        case 0:
          tensors.push_back(tensors[a].device() == to
                                ? Clone(tensors[a])
                                : To(tensors[a], to, /*non_blocking=*/true));
          expected.push_back(expected[a]);
          break;
        case 1:
          tensors[b] += To(tensors[a], tensors[b].device(), true);
          expected[b] = static_cast<float>(expected[b] + expected[a]);
          break;
        case 2:
          CopyTo(tensors[a], tensors[b], /*non_blocking=*/true);
          expected[b] = expected[a];
          break;
        default:
          tensors[a] = To(tensors[a], to, true) * 0.5 + step;
          expected[a] =
              static_cast<float>(static_cast<float>(expected[a] * 0.5) + step);
      }
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      ASSERT_EQ(ValuesOf(tensors[i]), std::vector<double>(257, expected[i]))
          << "tensor " << i << " of program " << program;
    }
  }
}

TEST_P(CrossDeviceTest, IntoAViewOnTheOtherDevice) {
  const Tensor x = Random({3, 4});
  const Tensor target = Zeros({2, 4, 3}, other(), DType::kFloat64);
  const Tensor part = Transpose(Select(target, 0, 1), 0, 1);
  RunOnce([&] { CopyTo(x + 1, part); });
  StreamStall hold(CurrentStream(device()));
  const Tensor sum = x + 1;
  const auto released = ReleaseIfCallerWaits(hold);
  CopyTo(sum, part, /*non_blocking=*/true);
  hold.Release();
  EXPECT_TRUE(Matches(part, {3, 4}, DType::kFloat64, ValuesOf(sum)));
  EXPECT_EQ(ValuesOf(target[0]), std::vector<double>(12, 0));
}

TEST_P(CrossDeviceTest, ThroughAllDevicesInTurn) {
  const Tensor x = Random({1003});
  Tensor y = x;
  for (int round = 0; round < 20; ++round) {
    for (const Device next : AllDevices()) y = To(y, next) + 1;
  }
  const double added = 20. * AllDevices().size();
  std::vector<double> expected = ValuesOf(x);
  for (double& value : expected) {
    for (int i = 0; i < added; ++i) value = static_cast<float>(value + 1);
  }
  EXPECT_EQ(ValuesOf(y), expected);
}

TEST_P(CopyTest, ATensorCopiedToItselfIsLeftAlone) {
  const Tensor x = FromVector<float>({0, 1, 2}, {3}, device());
  CopyTo(x, x);
  const Tensor repeated = Expand(x, {2, 3});
  CopyTo(repeated, repeated);
  EXPECT_TRUE(Matches(x, {3}, x.dtype(), {0, 1, 2}));
}

INSTANTIATE_FOR_ALL_DEVICES(CopyTest);
INSTANTIATE_TEST_SUITE_P(All, CrossDeviceTest,
                         testing::ValuesIn(PairsOfDevices()),
                         [](const testing::TestParamInfo<Pair>& info) {
                           return DeviceName(info.param.first) + "_to_" +
                                  DeviceName(info.param.second);
                         });

}  // namespace
}  // namespace d2l
