// Every operation against the slow, obvious computation in double precision.

#include "common/ops/ops.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/device/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> AsDoubles(const Tensor& x) {
  return VisitDType(x.dtype(), [&](auto zero) {
    const auto values = ToVector<decltype(zero)>(x);
    return std::vector<double>(values.begin(), values.end());
  });
}

// A transposed view: the same numbers, not contiguous.
Tensor Transposed(const Tensor& x) {
  return Tensor::View(x, x.offset(), {x.size(1), x.size(0)},
                      {x.strides()[1], x.strides()[0]});
}

// Element `index` of x as seen from the broadcast shape.
double At(const std::vector<double>& values, const Shape& shape,
          const Shape& out, std::int64_t index) {
  std::int64_t offset = 0;
  std::int64_t stride = 1;
  for (int d = 1; d <= out.rank(); ++d) {
    const std::int64_t size = out[out.rank() - d];
    const std::int64_t i = index % size;
    index /= size;
    if (d > shape.rank()) continue;
    const std::int64_t own = shape[shape.rank() - d];
    offset += (own == 1 ? 0 : i) * stride;
    stride *= own;
  }
  return values[offset];
}

class OpsTest : public testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
  Tensor Random(const Shape& shape, DType dtype = DType::kFloat32) const {
    return Randn(shape, device(), dtype);
  }

  // Checks one binary operator on operands of any shapes.
  template <typename Op>
  void CheckBinary(Op op, const Tensor& x, const Tensor& y) {
    const Tensor z = op(x, y);
    const Shape out = BroadcastShapes("test", x.shape(), y.shape());
    ASSERT_EQ(z.shape(), out);
    ASSERT_EQ(z.dtype(), x.dtype());
    ASSERT_EQ(z.device(), device());
    const std::vector<double> a = AsDoubles(x), b = AsDoubles(y),
                              c = AsDoubles(z);
    ASSERT_EQ(c.size(), static_cast<std::size_t>(out.numel()));
    for (std::int64_t i = 0; i < out.numel(); ++i) {
      // One rounding of an exact double: float arithmetic is correctly rounded.
      const double exact =
          op(At(a, x.shape(), out, i), At(b, y.shape(), out, i));
      const double expected =
          x.dtype() == DType::kFloat32 ? static_cast<float>(exact) : exact;
      ASSERT_EQ(c[i], expected) << "element " << i << " of " << out;
    }
  }
};

struct Plus {
  template <typename A, typename B>
  auto operator()(const A& a, const B& b) const {
    return a + b;
  }
};
struct Minus {
  template <typename A, typename B>
  auto operator()(const A& a, const B& b) const {
    return a - b;
  }
};
struct Times {
  template <typename A, typename B>
  auto operator()(const A& a, const B& b) const {
    return a * b;
  }
};

TEST_P(OpsTest, OnesOfEveryDType) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kUInt8}) {
    for (const Shape& shape :
         {Shape{}, Shape{1}, Shape{17}, Shape{2, 3}, Shape{2, 0, 3}}) {
      const Tensor x = Ones(shape, device(), dtype);
      EXPECT_EQ(x.shape(), shape);
      EXPECT_EQ(x.dtype(), dtype);
      EXPECT_EQ(AsDoubles(x), std::vector<double>(shape.numel(), 1.0));
    }
  }
}

TEST_P(OpsTest, BinaryOperatorsOnAllKindsOfOperands) {
  const auto check = [&](auto op) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      CheckBinary(op, Random({1}, dtype), Random({1}, dtype));
      CheckBinary(op, Random({}, dtype), Random({}, dtype));
      CheckBinary(op, Random({1003}, dtype), Random({1003}, dtype));
      CheckBinary(op, Random({0}, dtype), Random({0}, dtype));
      CheckBinary(op, Random({0, 3}, dtype), Random({1, 3}, dtype));
      CheckBinary(op, Random({5, 7}, dtype), Random({7}, dtype));
      CheckBinary(op, Random({7}, dtype), Random({5, 7}, dtype));
      CheckBinary(op, Random({5, 1}, dtype), Random({1, 7}, dtype));
      CheckBinary(op, Random({}, dtype), Random({2, 3, 4}, dtype));
      CheckBinary(op, Random({2, 1, 4, 1}, dtype), Random({3, 1, 5}, dtype));
      const Tensor t = Transposed(Random({7, 5}, dtype));
      CheckBinary(op, t, Random({5, 7}, dtype));
      CheckBinary(op, Random({5, 7}, dtype), t);
      CheckBinary(op, t, t);
    }
  };
  check(Plus());
  check(Minus());
  check(Times());
}

TEST_P(OpsTest, ScalarsOnEitherSide) {
  const Tensor x = Random({3, 5});
  const std::vector<double> a = AsDoubles(x);
  const std::vector<double> sum = AsDoubles(x + 2), left = AsDoubles(2 - x),
                            right = AsDoubles(x - 2),
                            product = AsDoubles(0.5 * x);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(sum[i], static_cast<float>(a[i] + 2));
    EXPECT_EQ(left[i], static_cast<float>(2 - a[i]));
    EXPECT_EQ(right[i], static_cast<float>(a[i] - 2));
    EXPECT_EQ(product[i], static_cast<float>(a[i] * 0.5));
  }
  EXPECT_EQ(AsDoubles(Transposed(x) + 1), AsDoubles(1 + Transposed(x)));
}

TEST_P(OpsTest, TheNotebooksExample) {
  const Tensor x = Ones({1, 2}, device());
  const Tensor y = Ones({1, 2}, device());
  const Tensor z = x * y + 2;
  EXPECT_THAT(ToVector<float>(z), ElementsAre(3.f, 3.f));
  EXPECT_EQ(ToString(z),
            "tensor([[3., 3.]], device='" + device().ToString() + "')");
}

TEST_P(OpsTest, Negation) {
  const Tensor x = Random({4, 9});
  std::vector<double> a = AsDoubles(x);
  for (double& value : a) value = -value;
  EXPECT_EQ(AsDoubles(-x), a);
  EXPECT_EQ(AsDoubles(-Transposed(x)), AsDoubles(0 - Transposed(x)));
  EXPECT_EQ(AsDoubles(-Random({0})), std::vector<double>());
  EXPECT_TRUE(std::signbit(Item(-(Ones({}, device()) - 1))));  // -0
}

TEST_P(OpsTest, IntegersWrapAround) {
  const Tensor x = Ones({3}, device(), DType::kUInt8);
  EXPECT_THAT(ToVector<std::uint8_t>(x - 2), ElementsAre(255, 255, 255));
  EXPECT_THAT(ToVector<std::uint8_t>(-x), ElementsAre(255, 255, 255));
  EXPECT_THAT(ToVector<std::uint8_t>((x + 254) + 2), ElementsAre(1, 1, 1));
  Tensor big = Ones({1}, device(), DType::kInt64) * 0x1p62;
  big += big;
  EXPECT_THAT(ToVector<std::int64_t>(big), ElementsAre(INT64_MIN));
  EXPECT_THAT(ToVector<std::int64_t>(-big), ElementsAre(INT64_MIN));
  EXPECT_THAT(ToVector<std::int64_t>(big - 1), ElementsAre(INT64_MAX));
}

TEST_P(OpsTest, NanAndInfinityGoThrough) {
  Tensor inf = Ones({1}, device()) * 3e38;
  inf *= 10;
  EXPECT_TRUE(std::isinf(Item(inf)));
  EXPECT_TRUE(std::isnan(Item(inf - inf)));
  EXPECT_TRUE(std::isnan(Item((inf - inf) * 0)));
}

TEST_P(OpsTest, InPlaceChangesTheSharedMemory) {
  Tensor x = Ones({2, 3}, device());
  const Tensor same = x;
  const void* address = x.data();
  const std::uint64_t version = x.version();
  x += 1;
  x *= x;
  x -= Ones({3}, device());
  EXPECT_EQ(x.data(), address);
  EXPECT_EQ(x.version(), version + 3);
  EXPECT_EQ(AsDoubles(same), std::vector<double>(6, 3.0));

  Tensor t = Transposed(x);
  t += 1;
  EXPECT_EQ(AsDoubles(x), std::vector<double>(6, 4.0));

  Tensor row = Ones({3}, device());
  EXPECT_THAT(ThrownText([&] { row += x; }),
              HasSubstr("[add_] the result, of shape (2, 3), does not fit in "
                        "place into a float32 tensor of shape (3)"));
}

TEST_P(OpsTest, MatMulAgainstTheTripleLoop) {
  const auto check = [&](const Tensor& a, const Tensor& b) {
    const Tensor c = MatMul(a, b);
    const std::int64_t n = a.size(0), k = a.size(1), m = b.size(1);
    ASSERT_EQ(c.shape(), (Shape{n, m}));
    const std::vector<double> x = AsDoubles(a), y = AsDoubles(b),
                              z = AsDoubles(c);
    const double epsilon = a.dtype() == DType::kFloat32 ? 0x1p-23 : 0x1p-52;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < m; ++j) {
        double expected = 0;
        double size = 0;  // of the terms: the bound of the error
        for (std::int64_t l = 0; l < k; ++l) {
          expected += x[i * k + l] * y[l * m + j];
          size += std::abs(x[i * k + l] * y[l * m + j]);
        }
        ASSERT_NEAR(z[i * m + j], expected, (k + 1) * epsilon * size)
            << "(" << i << ", " << j << ") of " << a.shape() << " @ "
            << b.shape();
      }
    }
  };
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    check(Random({1, 1}, dtype), Random({1, 1}, dtype));
    check(Random({3, 3}, dtype), Random({3, 3}, dtype));
    check(Random({17, 5}, dtype), Random({5, 33}, dtype));
    check(Random({1, 70}, dtype), Random({70, 2}, dtype));
    check(Random({0, 3}, dtype), Random({3, 2}, dtype));
    check(Random({3, 0}, dtype), Random({0, 2}, dtype));  // zeros
    const Tensor x = Random({7, 5}, dtype);
    check(x, Transposed(x));
    check(Transposed(x), x);
    check(Transposed(Random({1, 4}, dtype)), Transposed(Random({6, 1}, dtype)));
  }
}

TEST_P(OpsTest, RandnIsStandardNormalAndSeeded) {
  ManualSeed(7);
  const std::vector<double> first = AsDoubles(Random({50001}));
  const std::vector<double> second = AsDoubles(Random({50001}));
  EXPECT_NE(first, second);
  ManualSeed(7);
  EXPECT_EQ(AsDoubles(Random({50001})), first);
  EXPECT_EQ(AsDoubles(Random({50001})), second);
  ManualSeed(8);
  EXPECT_NE(AsDoubles(Random({50001})), first);

  double sum = 0, squares = 0;
  for (const double value : first) {
    sum += value;
    squares += value * value;
  }
  // Five standard errors of the mean and of the variance.
  EXPECT_NEAR(sum / 50001, 0, 5 / std::sqrt(50001.0));
  EXPECT_NEAR(squares / 50001, 1, 5 * std::sqrt(2 / 50001.0));
  EXPECT_EQ(AsDoubles(Random({0})), std::vector<double>());
}

TEST_P(OpsTest, TheSameSeedGivesTheSameNumbersOnEveryDevice) {
  ManualSeed(42);
  const std::vector<double> here = AsDoubles(Random({1001}));
  ManualSeed(42);
  const Device first = Devices()[0].device;
  EXPECT_EQ(AsDoubles(Randn({1001}, first)), here);
}

TEST_P(OpsTest, ReadingWaitsForTheWriterOnly) {
  const Tensor early = Ones({1}, device());
  Stream& stream = CurrentStream(device());
  Synchronize(device());
  HoldUp hold(stream);
  const Tensor late = early + 1;
  // Held up behind: reading what is done must not wait for it.
  EXPECT_EQ(Item(early), 1);
  EXPECT_FALSE(stream.Query());
  hold.Release();
  EXPECT_EQ(Item(late), 2);
}

TEST_P(OpsTest, StatementsOnlyEnqueue) {
  Stream& stream = CurrentStream(device());
  HoldUp hold(stream);
  const Tensor x = Ones({1, 2}, device());
  const Tensor z = x * x + 2;
  EXPECT_EQ(stream.QueuedOperations(), 4);  // the hold-up and three
  hold.Release();
  EXPECT_THAT(ToVector<float>(z), ElementsAre(3.f, 3.f));
}

TEST_P(OpsTest, TemporariesReuseMemoryWhileTheQueueIsLong) {
  const Tensor x = Ones({1000}, device());
  Synchronize(device());
  HoldUp hold(CurrentStream(device()));
  Tensor z = x + 1;
  z = x + 1;  // now two blocks are in the cycle
  const std::int64_t before = Memory(device()).Stats().raw_allocations;
  for (int i = 0; i < 1000; ++i) z = x + 1;
  EXPECT_EQ(Memory(device()).Stats().raw_allocations, before);
  hold.Release();
  EXPECT_EQ(AsDoubles(z), std::vector<double>(1000, 2.0));
}

TEST_P(OpsTest, StreamsOfADeviceShareTensorsThroughEvents) {
  Stream& other = NewStream(device());
  const Tensor x = Random({100});
  other.Wait(CurrentStream(device()).Record());
  Tensor y;
  {
    StreamGuard guard(other);
    y = x + 1;
  }
  std::vector<double> expected = AsDoubles(x);
  for (double& value : expected) value = static_cast<float>(value + 1);
  EXPECT_EQ(AsDoubles(y), expected);
}

TEST_P(OpsTest, ThreadsMayReadOneTensorOnStreamsOfTheirOwn) {
  const Tensor x = Random({100});
  Synchronize(device());
  std::vector<Tensor> results(4);
  std::vector<Stream*> streams;
  for (int t = 0; t < 4; ++t) streams.push_back(&NewStream(device()));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const StreamGuard guard(*streams[t]);
      for (int i = 0; i < 100; ++i) results[t] = x + t;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<double> values = AsDoubles(x);
  for (int t = 0; t < 4; ++t) {
    const std::vector<double> sums = AsDoubles(results[t]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(sums[i], static_cast<float>(values[i] + t));
    }
  }
}

TEST_P(OpsTest, EmptyTensorsMayHaveLongSides) {
  const std::int64_t kLong = std::int64_t{1} << 40;
  const Tensor x = Ones({kLong, kLong, 0}, device());
  EXPECT_EQ(AsDoubles(x + x), std::vector<double>());
}

TEST_P(OpsTest, MessagesOfWrongArguments) {
  const Tensor x = Ones({2, 3}, device());
  EXPECT_THAT(ThrownText([&] {
                x + Ones({4, 3}, device());
              }),
              HasSubstr("[add] shapes (2, 3) and (4, 3) do not broadcast"));
  EXPECT_THAT(ThrownText([&] {
                MatMul(x, Ones({4, 5}, device()));
              }),
              HasSubstr("[matmul] inner sizes differ: (2, 3) @ (4, 5); "
                        "requested at common/ops/ops_test.cc:"));
  EXPECT_THAT(ThrownText([&] { MatMul(x, Ones({3}, device())); }),
              HasSubstr("[matmul] two matrices wanted; got (2, 3) @ (3)"));
  EXPECT_THAT(ThrownText([&] {
                MatMul(x, Ones({3, 2}, device(), DType::kFloat64));
              }),
              HasSubstr("got float32 and float64"));
  EXPECT_THAT(ThrownText([&] {
                x* Ones({2, 3}, device(), DType::kInt64);
              }),
              HasSubstr("[mul] operands of two dtypes, float32 and int64"));
  EXPECT_THAT(ThrownText([&] { Ones({1}, device(), DType::kInt64) + 0.5; }),
              HasSubstr("[add] the scalar 0.5 is not a value of the tensor's "
                        "dtype int64"));
  EXPECT_THROW(Ones({1}, device(), DType::kUInt8) + 256, std::invalid_argument);
  EXPECT_THROW(Ones({1}, device(), DType::kInt64) + 0x1p63,
               std::invalid_argument);
  EXPECT_THAT(ThrownText([&] { x + Tensor(); }),
              HasSubstr("[add] an operand is an undefined tensor"));
  EXPECT_THAT(ThrownText([&] {
                Ones({2, -3}, device());
              }),
              HasSubstr("[ones] a size is negative: (2, -3)"));
  EXPECT_THAT(ThrownText([&] {
                Randn({INT64_MAX, 2}, device());
              }),
              HasSubstr("[randn] (9223372036854775807, 2) has more elements"));
  EXPECT_THAT(ThrownText([&] { Randn({2}, device(), DType::kInt64); }),
              HasSubstr("[randn] normal numbers are float32 or float64"));
  EXPECT_THAT(ThrownText([&] { Item(x); }),
              HasSubstr("[item] one element wanted; got a float32 tensor of "
                        "shape (2, 3)"));
  EXPECT_THAT(ThrownText([&] { Item(Tensor()); }),
              HasSubstr("[item] the tensor is undefined"));
  EXPECT_THAT(ThrownText([&] { ToVector<double>(x); }),
              HasSubstr("[to_vector] float64 elements asked of a float32"));
  EXPECT_THAT(ThrownText([] { Ones({1}, Device(DeviceType::kCpu, 63)); }),
              HasSubstr("cpu:63 is not in the device table"));
}

TEST_P(OpsTest, OperandsOnTwoDevicesAreRefused) {
  const Device other = Devices().back().device;
  if (other == device()) return;
  EXPECT_THAT(ThrownText([&] { Ones({1}, device()) + Ones({1}, other); }),
              HasSubstr("[add] operands on two devices"));
}

TEST_P(OpsTest, MoreThanTheMachineHasIsAnErrorNotACrash) {
  try {
    Ones({std::int64_t{1} << 42}, device());
    FAIL() << "16 TiB were allocated";
  } catch (const OutOfMemoryError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("16.0 TiB asked for on " + device().ToString()));
  }
  EXPECT_EQ(Item(Ones({}, device())), 1);  // and life goes on
}

INSTANTIATE_TEST_SUITE_P(All, OpsTest, testing::ValuesIn(AllDevices()),
                         DeviceTestName);

}  // namespace
}  // namespace d2l
