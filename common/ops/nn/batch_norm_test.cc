#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/device/stream_stall.h"
#include "common/ops/nn/functional.h"
#include "common/ops/nn/primitives.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

constexpr double kEps = 1e-5;

Tensor BatchNormStatistics(const Tensor& x) {
  return ApplyContiguous(BatchNormStatisticsPrimitive(), {&x},
                         SourceLocation::Current());
}

const Shape kShapes[] = {{2, 3, 4, 4},  {3, 2},         {5, 1, 7},
                         {40, 3, 3, 3}, {2, 3, 50, 50}, {1, 2, 3, 1, 2},
                         {300, 2, 9},   {2, 70, 1, 17}, {9, 2, 300}};

// The elements of each channel, with their places.
struct Channel {
  std::vector<std::int64_t> places;
  double mean = 0, variance = 0, largest = 0;
};

std::vector<Channel> ChannelsOf(const std::vector<double>& x,
                                const Shape& shape) {
  const std::int64_t inner =
      shape.numel() == 0 ? 1 : shape.numel() / shape[0] / shape[1];
  std::vector<Channel> channels(shape[1]);
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    channels[i / inner % shape[1]].places.push_back(i);
  }
  for (Channel& c : channels) {
    const long double n = static_cast<long double>(c.places.size());
    long double mean = 0, variance = 0;
    for (const std::int64_t i : c.places) {
      mean += x[i] / n;
      c.largest = std::max(c.largest, std::abs(x[i]));
    }
    for (const std::int64_t i : c.places) {
      variance += (x[i] - mean) * (x[i] - mean) / n;
    }
    c.mean = static_cast<double>(mean);
    c.variance = static_cast<double>(variance);
  }
  return channels;
}

class BatchNormTest : public DeviceTest {
 protected:
  // Adds an offset, so that means are not 0.
  Tensor Images(const Shape& shape, DType dtype) const {
    std::vector<double> values = RandomValues(shape.numel(), DType::kFloat32);
    for (double& value : values) value = std::tanh(value) * 3 + 2;
    return Place(values, shape, device(), dtype, Placement::kColumns);
  }
};
INSTANTIATE_FOR_ALL_DEVICES(BatchNormTest);

TEST_P(BatchNormTest, StatisticsAgreeWithTheSlowVersion) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.ToString());
      const Tensor x = Images(shape, dtype);
      std::vector<double> expected, errors;
      const std::vector<Channel> channels = ChannelsOf(ValuesOf(x), shape);
      for (const Channel& c : channels) expected.push_back(c.mean);
      for (const Channel& c : channels) expected.push_back(c.variance);
      for (const Channel& c : channels) {
        errors.push_back(8 * Epsilon(dtype) * c.largest);
      }
      for (const Channel& c : channels) {
        errors.push_back(16 * Epsilon(dtype) * c.largest * c.largest);
      }
      EXPECT_TRUE(IsNear(BatchNormStatistics(x), {2, shape[1]}, dtype, expected,
                         errors));
    }
  }
}

// The variance of numbers that are large beside their differences.
TEST_P(BatchNormTest, AVarianceFarFromZeroKeepsItsDigits) {
  std::vector<double> values;
  for (int i = 0; i < 10000; ++i) values.push_back(4096 + (i % 2));
  const Tensor x = Place(values, {100, 1, 100}, device());
  EXPECT_TRUE(IsNear(BatchNormStatistics(x), {2, 1}, DType::kFloat32,
                     {4096.5, 0.25}, {0, 1e-6}));
}

// The sum of large equal numbers is rounded; their mean must not be.
TEST_P(BatchNormTest, AConstantChannelHasNoVariance) {
  for (const double value : {12345.678, 7e9, -1e-30, 0.1}) {
    for (const Shape& shape : {Shape{7, 1, 33}, Shape{300, 1, 100}}) {
      const Tensor x = Full(shape, value, device());
      const float rounded = static_cast<float>(value);
      EXPECT_TRUE(IsNear(BatchNormStatistics(x), {2, 1}, DType::kFloat32,
                         {rounded, 0}, {0, 0}))
          << value;
      const Tensor ones = Ones({1}, device());
      Tensor mean = Zeros({1}, device());
      Tensor variance = Ones({1}, device());
      const Tensor y = BatchNorm(x, ones, Zeros({1}, device()), mean, variance,
                                 /*training=*/true, /*momentum=*/0.1, kEps);
      EXPECT_EQ(Item(Max(Abs(y))), 0) << value;
      EXPECT_NEAR(Item(variance), 0.9, 1e-6) << value;
    }
  }
}

TEST_P(BatchNormTest, AgreesWithTheSlowVersion) {
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.ToString());
      const Tensor x = Images(shape, dtype);
      const Shape vector = {shape[1]};
      const Tensor weight = RandomTensor(vector, device(), dtype);
      const Tensor bias = RandomTensor(vector, device(), dtype);
      const std::vector<double> xs = ValuesOf(x), w = ValuesOf(weight),
                                b = ValuesOf(bias);
      for (const bool training : {true, false}) {
        Tensor mean = Full(vector, 0.5, device(), dtype);
        Tensor variance = Full(vector, 4, device(), dtype);
        const Tensor y =
            BatchNorm(x, weight, bias, mean, variance, training, 0.25, kEps);
        std::vector<double> expected(xs.size()), errors(xs.size()), means,
            variances, zeros;
        std::int64_t channel = 0;
        for (const Channel& c : ChannelsOf(xs, shape)) {
          const double m = training ? c.mean : 0.5;
          const double v = training ? c.variance : 4;
          for (const std::int64_t i : c.places) {
            const double normal = (xs[i] - m) / std::sqrt(v + kEps);
            expected[i] = normal * w[channel] + b[channel];
            errors[i] = Epsilon(dtype) *
                        ((40 + 40 * c.largest * c.largest / (v + kEps)) *
                             std::abs(w[channel]) * (1 + std::abs(normal)) +
                         4 * std::abs(b[channel]));
          }
          const double n = static_cast<double>(c.places.size());
          means.push_back(training ? 0.375 + 0.25 * c.mean : 0.5);
          variances.push_back(training ? 3 + 0.25 * c.variance * n / (n - 1)
                                       : 4);
          zeros.push_back(training ? 100 * Epsilon(dtype) : 0);
          ++channel;
        }
        EXPECT_TRUE(IsNear(y, shape, dtype, expected, errors));
        EXPECT_TRUE(IsNear(mean, vector, dtype, means, zeros));
        EXPECT_TRUE(IsNear(variance, vector, dtype, variances, zeros));
      }
    }
  }
}

template <typename T>
void ExpectSameBits(const Tensor& got, const Tensor& expected) {
  const std::vector<T> a = ToVector<T>(got), b = ToVector<T>(expected);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE((std::isnan(a[i]) && std::isnan(b[i])) ||
                std::memcmp(&a[i], &b[i], sizeof(T)) == 0)
        << "element " << i << ": " << a[i] << ", not " << b[i];
  }
}

// The slow version: the statistics, and then an update of each running value.
template <typename T>
void CheckRunningValues(const Tensor& x, double momentum) {
  const SourceLocation at = SourceLocation::Current();
  const DType dtype = x.dtype();
  const Shape vector = {x.size(1)};
  std::vector<double> old = RandomValues(vector.numel(), dtype);
  const double special[] = {NAN, 1e-44, -INFINITY, 1e38, -0.0};
  for (std::size_t i = 2; i < old.size(); i += 3) old[i] = special[i % 5];
  const Tensor mean = Place(old, vector, x.device(), dtype);
  const Tensor variance =
      Place(old, vector, x.device(), dtype, Placement::kOffset);
  const Tensor weight = RandomTensor(vector, x.device(), dtype);
  const Tensor slow_mean = Clone(mean), slow_variance = Clone(variance);
  const Tensor y =
      BatchNorm(x, weight, weight, mean, variance, true, momentum, kEps);

  const Tensor dense = Contiguous(x), statistics = BatchNormStatistics(x);
  const double n = static_cast<double>(x.numel() / x.size(1));
  AxpbyInPlace(slow_mean, momentum, Select(statistics, 0, 0), 1 - momentum);
  AxpbyInPlace(slow_variance, momentum * n / (n - 1), Select(statistics, 0, 1),
               1 - momentum);
  ExpectSameBits<T>(mean, slow_mean);
  ExpectSameBits<T>(variance, slow_variance);
  ExpectSameBits<T>(y, Apply(BatchNormPrimitive(true, kEps),
                             {&dense, &statistics, &weight, &weight}, at));
  const std::vector<double> memory = ValuesOf(MemoryOf(variance));
  EXPECT_EQ(
      WithValues(memory, variance, std::vector<double>(variance.numel(), 99)),
      std::vector<double>(memory.size(), 99));
}

TEST_P(BatchNormTest, RunningValuesHaveTheBitsOfTwoUpdates) {
  for (const Shape& shape :
       {Shape{2, 3, 4, 4}, Shape{5, 1, 7}, Shape{300, 2, 9}, Shape{2, 70, 17},
        Shape{3, 33}, Shape{2, 1, 50, 50}}) {
    for (const double momentum : {0.1, 0.0, 1.0, 0.999999999, -2.0}) {
      SCOPED_TRACE(shape.ToString());
      for (const DType dtype : kFloatDTypes) {
        std::vector<double> values = RandomValues(shape.numel(), dtype);
        for (std::size_t i = 0; i < values.size(); i += 101) {
          values[i] = i % 2 == 0 ? INFINITY : NAN;
        }
        for (const Tensor& x :
             {Images(shape, dtype), Place(values, shape, device(), dtype)}) {
          dtype == DType::kFloat32 ? CheckRunningValues<float>(x, momentum)
                                   : CheckRunningValues<double>(x, momentum);
        }
      }
    }
  }
}

// What is read after the running values are written is as it was before.
TEST_P(BatchNormTest, RunningValuesMayShareMemory) {
  const auto run = [&](bool shared) {
    const Tensor x = Place({1, 2, 4, 8, 3, 5}, {3, 2}, device());
    const Tensor v = Place({3, 4}, {2}, device());
    const Tensor row = Select(x, 0, 1);
    const auto own = [&](const Tensor& y) { return shared ? y : Clone(y); };
    const Tensor mean = own(row), weight = own(v), bias = own(v);
    const Tensor y = BatchNorm(x, weight, bias, mean, v, true);
    return ValuesOf(Cat({Reshape(y, {6}), mean, v}, 0));
  };
  EXPECT_EQ(run(true), run(false));
  // The two may be one tensor: the mean, then the variance, is updated.
  const Tensor both = Place({8}, {1}, device());
  const Tensor one = Ones({1}, device());
  BatchNorm(Place({2, 4}, {2, 1}, device()), one, one, both, both, true, 0.5);
  EXPECT_EQ(ValuesOf(both), std::vector<double>{(0.5 * 8 + 0.5 * 3) / 2 + 1});
}

// As a wait for a failed operation does, reading throws, and names its line.
TEST_P(BatchNormTest, RunningValuesFailWithTheImages) {
  const Tensor one = Ones({3}, device());
  const Tensor mean = Zeros({3}, device()), variance = Ones({3}, device());
  const Tensor good = Ones({2, 3}, device());
  const Tensor places = FromVector<std::int64_t>({0, 5}, {2}, device());
  const std::uint64_t version = mean.version();
  const SourceLocation at = SourceLocation::Current();
  {
    const StreamStall hold(CurrentStream(device()));
    BatchNorm(IndexSelect(good, 0, places, at), one, one, mean, variance, true);
  }
  EXPECT_EQ(mean.version(), version + 1);
  for (const Tensor& running : {mean, variance}) ExpectFailedAt(at, running);
}

TEST_P(BatchNormTest, GradientsAgreeWithTheSlowVersion) {
  const SourceLocation at = SourceLocation::Current();
  for (const DType dtype : kFloatDTypes) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(shape.ToString());
      const Tensor x = Contiguous(Images(shape, dtype));
      const Tensor dy = RandomTensor(shape, device(), dtype);
      const Tensor weight = RandomTensor({shape[1]}, device(), dtype);
      const Tensor statistics = BatchNormStatistics(x);
      const std::vector<double> xs = ValuesOf(x), g = ValuesOf(dy),
                                w = ValuesOf(weight);
      const Tensor sums = Apply(BatchNormBackwardReducePrimitive(true, kEps),
                                {&dy, &x, &statistics}, at);
      const std::int64_t channels = shape[1];
      std::vector<double> expected(2 * channels), errors(2 * channels);
      std::vector<double> through(xs.size()), constant(xs.size()),
          dx_errors(xs.size());
      std::int64_t c = 0;
      for (const Channel& one : ChannelsOf(xs, shape)) {
        const double scale = 1 / std::sqrt(one.variance + kEps);
        const double n = static_cast<double>(one.places.size());
        const double lost =
            Epsilon(dtype) *
            (20 + 40 * one.largest * one.largest * scale * scale);
        double absolute = 0, largest = 0;
        for (const std::int64_t i : one.places) {
          const double normal = (xs[i] - one.mean) * scale;
          expected[c] += g[i];
          expected[channels + c] += g[i] * normal;
          absolute += std::abs(g[i]) * (1 + std::abs(normal));
          largest = std::max(largest, std::abs(normal));
        }
        errors[c] = errors[channels + c] = lost * absolute;
        for (const std::int64_t i : one.places) {
          const double normal = (xs[i] - one.mean) * scale;
          constant[i] = w[c] * scale * g[i];
          through[i] =
              w[c] * scale *
              (g[i] - expected[c] / n - normal * expected[channels + c] / n);
          dx_errors[i] = lost * std::abs(w[c]) * scale *
                         (std::abs(g[i]) + (1 + largest) * absolute / n);
        }
        ++c;
      }
      EXPECT_TRUE(IsNear(sums, {2, channels}, dtype, expected, errors));
      const BatchNormBackwardPrimitive gradient(kEps);
      EXPECT_TRUE(
          IsNear(Apply(gradient, {&dy, &x, &statistics, &weight, &sums}, at),
                 shape, dtype, through, dx_errors));
      EXPECT_TRUE(IsNear(Apply(gradient, {&dy, &x, &statistics, &weight}, at),
                         shape, dtype, constant, dx_errors));
    }
  }
}

TEST_P(BatchNormTest, OfNothing) {
  const Tensor one = Ones({3}, device());
  Tensor mean = Zeros({3}, device()), variance = Ones({3}, device());
  EXPECT_EQ(BatchNorm(Zeros({0, 3, 2, 2}, device()), one, one, mean, variance,
                      /*training=*/false)
                .shape(),
            (Shape{0, 3, 2, 2}));
  const Tensor none = Ones({0}, device());
  EXPECT_EQ(BatchNormStatistics(Zeros({2, 0, 4}, device())).shape(),
            (Shape{2, 0}));
  EXPECT_EQ(BatchNorm(Zeros({2, 0, 4}, device()), none, none, none, none,
                      /*training=*/false)
                .numel(),
            0);
}

// As in PyTorch: nothing is computed, and the running values stay.
TEST_P(BatchNormTest, OfAnEmptyBatchInTraining) {
  const Tensor one = Ones({3}, device());
  for (const Shape& shape : {Shape{0, 3, 2}, Shape{0, 3}, Shape{2, 3, 0}}) {
    const Tensor mean = Full({3}, 5, device()),
                 variance = Full({3}, 7, device());
    const Tensor y = BatchNorm(Zeros(shape, device()), one, one, mean, variance,
                               /*training=*/true);
    EXPECT_TRUE(Matches(y, shape, DType::kFloat32, {}));
    EXPECT_TRUE(Matches(mean, {3}, DType::kFloat32, {5, 5, 5}));
    EXPECT_TRUE(Matches(variance, {3}, DType::kFloat32, {7, 7, 7}));
  }
}

TEST_P(BatchNormTest, Refuses) {
  const Tensor one = Ones({3}, device());
  Tensor mean = Zeros({3}, device()), variance = Ones({3}, device());
  EXPECT_REFUSED(
      "[batch_norm] Expected more than 1 value per channel when training, got "
      "input size (1, 3, 1, 1); a larger batch, or training = false",
      BatchNorm(Zeros({1, 3, 1, 1}, device()), one, one, mean, variance, true));
  EXPECT_REFUSED(
      "[batch_norm] a tensor of shape (batch, channels, …) wanted; got " +
          one.Describe(),
      BatchNorm(one, one, one, mean, variance, true));
  const Tensor x = Zeros({2, 4, 2}, device());
  EXPECT_REFUSED(
      "[batch_norm] running_mean: float32 of shape (4) wanted, as x has 4 "
      "channels; got " +
          mean.Describe(),
      BatchNorm(x, one, one, mean, variance, false));
  const Tensor four = Ones({4}, device());
  EXPECT_REFUSED(
      "[batch_norm] weight: float32 of shape (4) wanted, as x has 4 channels; "
      "got " +
          one.Describe(),
      BatchNorm(x, one, four, Clone(four), Clone(four), true));
  const Tensor y = Ones({2, 3}, device());
  EXPECT_REFUSED(
      "[batch_norm] an operand is an undefined tensor (a Tensor that was "
      "declared and never assigned)",
      BatchNorm(y, one, one, mean, Tensor(), true));
  const Device other = OtherDevice(device());
  if (other != device()) {
    const Tensor far = Ones({3}, other);
    const std::string message =
        "[batch_norm] operands on two devices, " + device().ToString() +
        " and " + other.ToString() + "; copy one to the other's device first";
    EXPECT_REFUSED(message, BatchNorm(y, one, one, mean, far, true));
    EXPECT_REFUSED(message, BatchNorm(y, one, far, mean, variance, true));
  }
  const Tensor two = Slice(variance, 0, 0, 2), later = Slice(variance, 0, 1, 3);
  const Tensor x2 = Ones({2, 2}, device());
  EXPECT_REFUSED("[batch_norm_stats_] the target, " + two.Describe() +
                     ", overlaps an operand of shape (2) without being the "
                     "same: elements would be overwritten before they are "
                     "read; copy the operand first, Clone(x)",
                 Apply(BatchNormStatisticsPrimitive(0.1), {&x2, &two, &later},
                       SourceLocation::Current()));
  const Tensor one_value = Rand({1, 3}, device());
  EXPECT_REFUSED(
      "[batch_norm_stats] more than one value per channel wanted for running "
      "values, got input size (1, 3)",
      Apply(BatchNormStatisticsPrimitive(0.1), {&one_value, &mean, &variance},
            SourceLocation::Current()));
  EXPECT_REFUSED("[batch_norm_stats] 3 inputs wanted; got 2",
                 Apply(BatchNormStatisticsPrimitive(0.1), {&y, &mean},
                       SourceLocation::Current()));
  // The refused calls have not changed the running values.
  EXPECT_TRUE(Matches(mean, {3}, DType::kFloat32, {0, 0, 0}));
  EXPECT_TRUE(Matches(variance, {3}, DType::kFloat32, {1, 1, 1}));
}

}  // namespace
}  // namespace d2l
