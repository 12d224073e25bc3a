// The kernels of neural networks, of random numbers and of several operations
// at once against slow obvious versions, on every GPU of the table, and the
// bits of sums. Through operations, they are tested in common/ops.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/memory/memory.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/device/testing/testing.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"
#include "common/kernels/philox.h"
#include "common/tensor/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::kernels {
namespace {

using Doubles = std::vector<double>;

std::vector<Device> Gpus() {
  std::vector<Device> gpus;
  for (const Device device : AllDevices()) {
    if (device.type() == DeviceType::kCuda) gpus.push_back(device);
  }
  return gpus;
}

// Numbers on a device, between guards. A vector begins at number 0 of the
// memory and at number 4, and not where the array does unless a test says so.
template <typename T>
class Array {
 public:
  Array(Stream& stream, const Doubles& values, std::size_t first = 1)
      : stream_(stream),
        first_(first),
        host_(first + values.size() + 1, T{77}) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      host_[first + i] = static_cast<T>(values[i]);
    }
    memory_ = Memory(stream.device()).Allocate(bytes(), stream);
    stream.CopyAsync(memory_->data(), host_.data(), bytes(),
                     CopyKind::kHostToDevice);
    stream.Synchronize();
  }

  T* data() { return static_cast<T*>(memory_->data()) + first_; }
  // As the array holds them.
  Doubles Read() {
    stream_.CopyAsync(host_.data(), memory_->data(), bytes(),
                      CopyKind::kDeviceToHost);
    stream_.Synchronize();
    EXPECT_EQ(host_[first_ - 1], T{77});
    EXPECT_EQ(host_.back(), T{77});
    return Doubles(host_.data() + first_, host_.data() + host_.size() - 1);
  }

 private:
  std::size_t bytes() const { return host_.size() * sizeof(T); }

  Stream& stream_;
  std::size_t first_;
  std::vector<T> host_;
  StorageRef memory_;
};

// A value and how much was added up for it: errors grow with that.
struct Sum {
  double value = 0;
  double terms = 0;

  void Add(double term) {
    value += term;
    terms += std::abs(term);
  }
};

template <typename T>
void ExpectNear(const Doubles& got, const std::vector<Sum>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error =
        16 * std::numeric_limits<T>::epsilon() * (expected[i].terms + 1e-3);
    ASSERT_NEAR(got[i], expected[i].value, error) << "element " << i;
  }
}

class NnKernelsTest : public testing::TestWithParam<Device> {
 protected:
  Stream& stream() { return DefaultStream(GetParam()); }

  // As T holds them: neither uniform nor centred.
  template <typename T>
  Doubles Random(std::int64_t count) {
    std::normal_distribution<double> normal(0.3, 1);
    Doubles values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<T>(normal(random_)));
    }
    return values;
  }
  Doubles RandomBelow(std::int64_t count, std::int64_t end) {
    Doubles values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(
          static_cast<double>(random_() % static_cast<unsigned>(end)));
    }
    return values;
  }
  // What the next wait says.
  std::string LateError() {
    try {
      stream().Synchronize();
    } catch (const AsyncError& error) {
      return error.what();
    }
    return "nothing thrown";
  }
  const OpLabel label_{"nn"};

 private:
  std::mt19937 random_{7};
};

// Calls test(T{}) for both types.
template <typename F>
void ForBoth(const F& test) {
  test(float{});
  test(double{});
}

// ---- Sums.

// The results of the order that reduce_plan.h promises, as another program
// computed them: any other order gives other last bits.
TEST_P(NnKernelsTest, SumsHaveTheSameBitsOnEveryGpu) {
  const struct {
    ReduceLayout layout;
    Doubles expected;
  } cases[] = {
      {{{1}, {1}, {1003}, {1}}, {0x1.0c91151f6dcc0p+40}},
      // Side by side.
      {{{3}, {1}, {1003}, {3}},
       {0x1.8117af1f77807p+46, 0x1.48227130282e8p+46, -0x1.922f26fbd3548p+47}},
      // 25 blocks, whose sums a second kernel adds up.
      {{{1}, {1}, {100003}, {1}}, {-0x1.7f8928808b064p+46}},
      // Rows, shorter than an output's lanes, and longer, in 7 blocks.
      {{{3}, {49}, {17, 49}, {147, 1}},
       {-0x1.90e087911ea62p+48, 0x1.4851fe7112010p+47, 0x1.06c4d9ffe010ep+47}},
      {{{2}, {3001}, {9, 3001}, {6002, 1}},
       {0x1.55a997d042cfcp+45, -0x1.89182c47e3910p+44}},
      // Rows of whole steps.
      {{{3}, {48}, {17, 48}, {144, 1}},
       {-0x1.0458fabf951f8p+46, -0x1.06771c1d4f084p+45, 0x1.3fc78373f1b5ep+45}},
      {{{2}, {3000}, {9, 3000}, {6000, 1}},
       {0x1.53206f0cb6c0cp+46, -0x1.4704c123f4630p+45}},
  };
  for (const auto& [layout, expected] : cases) {
    Doubles x(layout.kept.numel() * layout.reduced.numel());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto mixed = static_cast<std::uint32_t>(i * 2654435761u);
      x[i] = std::ldexp(mixed - 0x1p31, static_cast<int>(i * 7 % 31) - 15);
    }
    Array<double> in(stream(), x);
    Array<double> out(stream(), Doubles(expected.size(), 99));
    Enqueue(stream(), label_,
            ReduceArgs{ReduceOp::kSum, DType::kFloat64, out.data(), in.data(),
                       &layout});
    EXPECT_EQ(out.Read(), expected);
  }
}

// ---- Windows.

Window2d Window(std::int64_t height, std::int64_t width, std::int64_t kernel_h,
                std::int64_t kernel_w, std::int64_t stride_h,
                std::int64_t stride_w, std::int64_t padding_h,
                std::int64_t padding_w) {
  return {height,
          width,
          (height + 2 * padding_h - kernel_h) / stride_h + 1,
          (width + 2 * padding_w - kernel_w) / stride_w + 1,
          kernel_h,
          kernel_w,
          stride_h,
          stride_w,
          padding_h,
          padding_w};
}

// Calls f(out, in, tap) for what each output of an image sees of it.
void ForEachPair(
    const Window2d& w,
    const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f) {
  for (std::int64_t i = 0; i < w.out_height; ++i) {
    for (std::int64_t j = 0; j < w.out_width; ++j) {
      for (std::int64_t k = 0; k < w.kernel_height * w.kernel_width; ++k) {
        const std::int64_t row =
            i * w.stride_height - w.padding_height + k / w.kernel_width;
        const std::int64_t column =
            j * w.stride_width - w.padding_width + k % w.kernel_width;
        if (row < 0 || row >= w.height || column < 0 || column >= w.width) {
          continue;
        }
        f(i * w.out_width + j, row * w.width + column, k);
      }
    }
  }
}

struct Convolution {
  std::int64_t batch, in, out;
  Window2d window;
};

const Convolution kConvolutions[] = {
    {7, 3, 5, Window(9, 8, 3, 3, 1, 1, 1, 1)},
    {2, 1, 20, Window(13, 11, 5, 4, 1, 1, 0, 0)},
    {1, 4, 3, Window(10, 9, 3, 5, 2, 3, 3, 2)},
    {3, 5, 4, Window(7, 6, 1, 1, 1, 1, 0, 0)},
    {2, 140, 3, Window(5, 4, 1, 1, 1, 1, 0, 0)},  // no small product
    {4, 6, 7, Window(6, 9, 1, 1, 2, 2, 0, 0)},
    {5, 2, 3, Window(4, 4, 4, 4, 1, 1, 0, 0)},
    {2, 3, 2, Window(5, 7, 2, 2, 4, 3, 1, 1)},  // unseen pixels
    {1, 1, 1, Window(1, 1, 1, 1, 1, 1, 0, 0)},
    {1, 40, 30, Window(6, 6, 3, 3, 1, 1, 1, 1)},
    {0, 3, 2, Window(5, 5, 3, 3, 1, 1, 1, 1)},
};
// Two groups of doubles, which takes 64 MB of patches: the check of kernels
// looks at each of these ten million numbers for a microsecond or so.
const Convolution kTwoGroups = {37, 1, 1, Window(32, 32, 15, 15, 1, 1, 7, 7)};

TEST_P(NnKernelsTest, Conv2d) {
  ForBoth([this](auto zero) {
    using T = decltype(zero);
    std::vector<Convolution> convolutions(std::begin(kConvolutions),
                                          std::end(kConvolutions));
    if (sizeof(T) == sizeof(double)) convolutions.push_back(kTwoGroups);
    for (const Convolution& c : convolutions) {
      const bool two_groups = c.batch == kTwoGroups.batch;
      const Window2d& w = c.window;
      const std::int64_t pixels = w.height * w.width;
      const std::int64_t out_pixels = w.out_height * w.out_width;
      const std::int64_t taps = w.kernel_height * w.kernel_width;
      const Doubles x = Random<T>(c.batch * c.in * pixels);
      const Doubles weight = Random<T>(c.out * c.in * taps);
      const Doubles bias = Random<T>(c.out);
      const Doubles dy = Random<T>(c.batch * c.out * out_pixels);
      std::vector<Sum> y(dy.size()), dx(x.size()), dw(weight.size());
      for (std::int64_t n = 0; n < c.batch; ++n) {
        for (std::int64_t o = 0; o < c.out; ++o) {
          for (std::int64_t i = 0; i < c.in; ++i) {
            ForEachPair(
                w, [&](std::int64_t out, std::int64_t in, std::int64_t tap) {
                  const std::int64_t at_y = (n * c.out + o) * out_pixels + out;
                  const std::int64_t at_x = (n * c.in + i) * pixels + in;
                  const std::int64_t at_w = (o * c.in + i) * taps + tap;
                  y[at_y].Add(x[at_x] * weight[at_w]);
                  dx[at_x].Add(dy[at_y] * weight[at_w]);
                  dw[at_w].Add(dy[at_y] * x[at_x]);
                });
          }
        }
      }
      SCOPED_TRACE(&c - convolutions.data());
      Array<T> x_array(stream(), x), weight_array(stream(), weight);
      Array<T> bias_array(stream(), bias), dy_array(stream(), dy);
      const auto run = [&](Conv2dPass pass, std::size_t numel, T* first,
                           T* second, T* bias_or_null) {
        Array<T> out(stream(), Doubles(numel, 99));
        Enqueue(stream(), label_,
                Conv2dArgs{pass, DTypeOf<T>::value, c.batch, c.in, c.out, w,
                           out.data(), first, second, bias_or_null});
        return out.Read();
      };
      if (!two_groups) {
        ExpectNear<T>(run(Conv2dPass::kForward, y.size(), x_array.data(),
                          weight_array.data(), nullptr),
                      y);
      }
      ExpectNear<T>(run(Conv2dPass::kInputGradient, dx.size(), dy_array.data(),
                        weight_array.data(), nullptr),
                    dx);
      ExpectNear<T>(run(Conv2dPass::kWeightGradient, dw.size(), dy_array.data(),
                        x_array.data(), nullptr),
                    dw);
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i].Add(bias[static_cast<std::int64_t>(i) / out_pixels % c.out]);
      }
      ExpectNear<T>(run(Conv2dPass::kForward, y.size(), x_array.data(),
                        weight_array.data(), bias_array.data()),
                    y);
    }
  });
}

struct Pooling {
  std::int64_t images;
  Window2d window;
};

const Pooling kPoolings[] = {
    {6, Window(8, 6, 2, 2, 2, 2, 0, 0)},
    {3, Window(9, 11, 3, 3, 2, 2, 1, 1)},
    {2, Window(7, 5, 3, 2, 1, 1, 1, 1)},
    {2, Window(7, 9, 2, 3, 3, 4, 0, 1)},  // unseen pixels
    {5, Window(4, 7, 4, 7, 1, 1, 0, 0)},  // all of the image
    {0, Window(4, 4, 2, 2, 2, 2, 0, 0)},
    {1, Window(1, 1, 1, 1, 1, 1, 0, 0)},
};

TEST_P(NnKernelsTest, AvgPool2d) {
  ForBoth([this](auto zero) {
    using T = decltype(zero);
    for (const Pooling& p : kPoolings) {
      const Window2d& w = p.window;
      const std::int64_t pixels = w.height * w.width;
      const std::int64_t out_pixels = w.out_height * w.out_width;
      const double area = static_cast<double>(w.kernel_height * w.kernel_width);
      const Doubles x = Random<T>(p.images * pixels);
      const Doubles dy = Random<T>(p.images * out_pixels);
      std::vector<Sum> y(dy.size()), dx(x.size());
      for (std::int64_t n = 0; n < p.images; ++n) {
        ForEachPair(w, [&](std::int64_t out, std::int64_t in, std::int64_t) {
          y[n * out_pixels + out].Add(x[n * pixels + in] / area);
          dx[n * pixels + in].Add(dy[n * out_pixels + out] / area);
        });
      }
      SCOPED_TRACE(&p - kPoolings);
      Array<T> x_array(stream(), x), dy_array(stream(), dy);
      Array<T> y_array(stream(), Doubles(y.size(), 99));
      Array<T> dx_array(stream(), Doubles(dx.size(), 99));
      Enqueue(stream(), label_,
              Pool2dArgs{Pool2dOp::kAvg, DTypeOf<T>::value, p.images, w,
                         y_array.data(), x_array.data()});
      Enqueue(stream(), label_,
              Pool2dArgs{Pool2dOp::kAvgGradient, DTypeOf<T>::value, p.images, w,
                         dx_array.data(), dy_array.data()});
      ExpectNear<T>(y_array.Read(), y);
      ExpectNear<T>(dx_array.Read(), dx);
    }
  });
}

// Equals in most windows, and NaN in some.
TEST_P(NnKernelsTest, MaxPool2d) {
  ForBoth([this](auto zero) {
    using T = decltype(zero);
    for (const Pooling& p : kPoolings) {
      const Window2d& w = p.window;
      const std::int64_t pixels = w.height * w.width;
      const std::int64_t out_pixels = w.out_height * w.out_width;
      Doubles x = RandomBelow(p.images * pixels, 4);
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = i % 23 == 5 ? std::nan("") : x[i] - 6;
      }
      const Doubles dy = Random<T>(p.images * out_pixels);
      Doubles y(dy.size());
      std::vector<std::int64_t> at(dy.size(), -1);
      std::vector<Sum> dx(x.size());
      for (std::int64_t n = 0; n < p.images; ++n) {
        ForEachPair(w, [&](std::int64_t out, std::int64_t in, std::int64_t) {
          const double value = x[n * pixels + in];
          out += n * out_pixels;
          if (at[out] < 0 || value > y[out] || std::isnan(value)) {
            y[out] = value;
            at[out] = n * pixels + in;
          }
        });
      }
      for (std::size_t i = 0; i < dy.size(); ++i) dx[at[i]].Add(dy[i]);
      SCOPED_TRACE(&p - kPoolings);
      Array<T> x_array(stream(), x), dy_array(stream(), dy);
      Array<T> y_array(stream(), Doubles(y.size(), 99));
      Array<T> dx_array(stream(), Doubles(dx.size(), 99));
      Enqueue(stream(), label_,
              Pool2dArgs{Pool2dOp::kMax, DTypeOf<T>::value, p.images, w,
                         y_array.data(), x_array.data()});
      Enqueue(stream(), label_,
              Pool2dArgs{Pool2dOp::kMaxGradient, DTypeOf<T>::value, p.images, w,
                         dx_array.data(), dy_array.data(), x_array.data()});
      EXPECT_THAT(y_array.Read(),
                  testing::Pointwise(testing::NanSensitiveDoubleEq(), y));
      ExpectNear<T>(dx_array.Read(), dx);
    }
  });
}

// ---- Batch normalisation.

struct Normalization {
  std::int64_t batch, channels, inner;
  // Where the array of dy begins, and those of x and out.
  std::size_t dy_first = 1, first = 1;
};

// Few and many channels, rows of one element and of many, several segments;
// then rows that are vectors in every array, in some, or for one type.
const Normalization kNormalizations[] = {
    {7, 5, 49},       {1, 1, 1},        {2, 3, 1},          {1, 2, 6},
    {300, 40, 1},     {64, 2, 784},     {5, 3, 3000},       {3, 0, 4},
    {9, 70, 17},      {2, 2, 1025},     {64, 2, 784, 4, 4}, {2, 2, 5000, 4, 4},
    {7, 5, 12, 1, 4}, {7, 5, 12, 4, 1}, {7, 5, 6, 4, 4},    {7, 5, 49, 4, 4},
};

TEST_P(NnKernelsTest, BatchNorm) {
  ForBoth([this](auto zero) {
    using T = decltype(zero);
    constexpr DType kDType = DTypeOf<T>::value;
    constexpr double kEps = 1e-3;
    for (const Normalization& b : kNormalizations) {
      const std::int64_t numel = b.batch * b.channels * b.inner;
      const double count = static_cast<double>(b.batch * b.inner);
      Doubles x = Random<T>(numel);
      // Means far from zero: digits that are easily lost.
      for (double& value : x) value = static_cast<T>(value + 300);
      const Doubles dy = Random<T>(numel);
      const Doubles weight = Random<T>(b.channels);
      const Doubles bias = Random<T>(b.channels);
      const auto channel = [&](std::size_t i) {
        return static_cast<std::int64_t>(i) / b.inner % b.channels;
      };
      // Naive sums in double would be worse than what is tested.
      std::vector<long double> mean(b.channels), variance(b.channels);
      for (std::size_t i = 0; i < x.size(); ++i) {
        mean[channel(i)] += x[i] / static_cast<long double>(count);
      }
      for (std::size_t i = 0; i < x.size(); ++i) {
        const long double difference = x[i] - mean[channel(i)];
        variance[channel(i)] += difference * difference / count;
      }
      SCOPED_TRACE(&b - kNormalizations);
      Array<T> x_array(stream(), x, b.first);
      Array<T> dy_array(stream(), dy, b.dy_first);
      Array<T> weight_array(stream(), weight), bias_array(stream(), bias);
      Array<T> statistics(stream(), Doubles(2 * b.channels, 99));
      Array<T> running_mean(stream(), bias), running_var(stream(), weight);
      BatchNormArgs args = {BatchNormPass::kStatistics,
                            kDType,
                            b.batch,
                            b.channels,
                            b.inner,
                            kEps,
                            statistics.data(),
                            x_array.data(),
                            nullptr,
                            nullptr,
                            nullptr};
      Enqueue(stream(), label_, args);
      const Doubles without = statistics.Read();
      args.running_mean = running_mean.data();
      args.running_var = running_var.data();
      args.momentum = 0.3;
      Enqueue(stream(), label_, args);
      std::vector<Sum> expected;
      for (const long double m : mean) {
        expected.push_back({static_cast<double>(m), static_cast<double>(m)});
      }
      for (const long double v : variance) {
        expected.push_back(
            {static_cast<double>(v), static_cast<double>(v + 0.1)});
      }
      const Doubles got = statistics.Read();
      ExpectNear<T>(got, expected);
      EXPECT_EQ(got, without);
      if (count > 1) {
        const T kept = static_cast<T>(0.7), part = static_cast<T>(0.3);
        const T unbiased = static_cast<T>(0.3 * count / (count - 1));
        Doubles means, variances;
        for (std::int64_t c = 0; c < b.channels; ++c) {
          const T of_mean = part * static_cast<T>(got[c]);
          const T of_var = unbiased * static_cast<T>(got[b.channels + c]);
          means.push_back(of_mean + kept * static_cast<T>(bias[c]));
          variances.push_back(of_var + kept * static_cast<T>(weight[c]));
        }
        EXPECT_EQ(running_mean.Read(), means);
        EXPECT_EQ(running_var.Read(), variances);
      }

      // With the statistics as they are, so that their errors do not count.
      expected.assign(x.size(), {});
      std::vector<Sum> sums(2 * b.channels);
      const auto xhat = [&](std::size_t i) {
        return (x[i] - got[channel(i)]) /
               std::sqrt(got[b.channels + channel(i)] + kEps);
      };
      for (std::size_t i = 0; i < x.size(); ++i) {
        expected[i].Add(xhat(i) * weight[channel(i)]);
        expected[i].Add(bias[channel(i)]);
        sums[channel(i)].Add(dy[i]);
        sums[b.channels + channel(i)].Add(dy[i] * xhat(i));
      }
      Array<T> out(stream(), Doubles(x.size(), 99), b.first);
      Enqueue(stream(), label_,
              BatchNormArgs{BatchNormPass::kForward, kDType, b.batch,
                            b.channels, b.inner, kEps, out.data(),
                            x_array.data(), statistics.data(),
                            weight_array.data(), bias_array.data()});
      ExpectNear<T>(out.Read(), expected);

      Array<T> sums_array(stream(), Doubles(2 * b.channels, 99));
      Enqueue(
          stream(), label_,
          BatchNormArgs{BatchNormPass::kSums, kDType, b.batch, b.channels,
                        b.inner, kEps, sums_array.data(), x_array.data(),
                        statistics.data(), nullptr, nullptr, dy_array.data()});
      const Doubles got_sums = sums_array.Read();
      ExpectNear<T>(got_sums, sums);

      for (const bool training : {true, false}) {
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::int64_t c = channel(i);
          const double factor =
              weight[c] / std::sqrt(got[b.channels + c] + kEps);
          expected[i] = {};
          expected[i].Add(factor * dy[i]);
          if (!training) continue;
          expected[i].Add(-factor * got_sums[c] / count);
          expected[i].Add(-factor * xhat(i) * got_sums[b.channels + c] / count);
        }
        Enqueue(stream(), label_,
                BatchNormArgs{BatchNormPass::kInputGradient, kDType, b.batch,
                              b.channels, b.inner, kEps, out.data(),
                              x_array.data(), statistics.data(),
                              weight_array.data(), nullptr, dy_array.data(),
                              training ? sums_array.data() : nullptr});
        ExpectNear<T>(out.Read(), expected);
      }
    }
  });
}

// ---- Cross-entropy.

TEST_P(NnKernelsTest, CrossEntropy) {
  const std::pair<std::int64_t, std::int64_t> shapes[] = {
      {1, 1}, {5, 3}, {300, 10}, {4, 1000}, {0, 3}, {2300, 7}};
  ForBoth([&](auto zero) {
    using T = decltype(zero);
    for (const auto& [samples, classes] : shapes) {
      Doubles logits = Random<T>(samples * classes);
      for (double& x : logits) x *= 16;
      const Doubles labels = RandomBelow(samples, classes);
      const Doubles dy = Random<T>(samples);
      std::vector<Sum> loss(samples), gradient(logits.size());
      for (std::int64_t i = 0; i < samples; ++i) {
        const double* const row = &logits[i * classes];
        double most = row[0], total = 0;
        for (std::int64_t j = 0; j < classes; ++j)
          most = std::max(most, row[j]);
        for (std::int64_t j = 0; j < classes; ++j) {
          total += std::exp(row[j] - most);
        }
        const std::int64_t label = static_cast<std::int64_t>(labels[i]);
        loss[i] = {most + std::log(total) - row[label], std::abs(most) + 1};
        for (std::int64_t j = 0; j < classes; ++j) {
          gradient[i * classes + j] = {
              dy[i] * (std::exp(row[j] - most) / total - (j == label ? 1 : 0)),
              std::abs(dy[i])};
        }
      }
      SCOPED_TRACE(samples);
      Array<T> logits_array(stream(), logits), dy_array(stream(), dy);
      Array<std::int64_t> labels_array(stream(), labels);
      Array<T> out(stream(), Doubles(samples, 99));
      Array<T> dx(stream(), Doubles(logits.size(), 99));
      Enqueue(stream(), label_,
              CrossEntropyArgs{DTypeOf<T>::value, samples, classes, out.data(),
                               logits_array.data(), labels_array.data()});
      Enqueue(stream(), label_,
              CrossEntropyArgs{DTypeOf<T>::value, samples, classes, dx.data(),
                               logits_array.data(), labels_array.data(),
                               dy_array.data()});
      ExpectNear<T>(out.Read(), loss);
      ExpectNear<T>(dx.Read(), gradient);
    }
  });
}

TEST_P(NnKernelsTest, ALabelOutOfRangeFailsLate) {
  Array<float> logits(stream(), Doubles(6, 1)), out(stream(), Doubles(6, 1));
  Array<float> dy(stream(), Doubles(3, 1));
  for (const double wrong : {2., -1.}) {
    Array<std::int64_t> labels(stream(), {0, wrong, 1});
    const std::string text = "label " +
                             std::to_string(static_cast<int>(wrong)) +
                             " of sample 1 is out of range";
    Enqueue(stream(), label_,
            CrossEntropyArgs{DType::kFloat32, 3, 2, out.data(), logits.data(),
                             labels.data()});
    EXPECT_THAT(LateError(), testing::HasSubstr(text));
    Enqueue(stream(), label_,
            CrossEntropyArgs{DType::kFloat32, 3, 2, out.data(), logits.data(),
                             labels.data(), dy.data()});
    EXPECT_THAT(LateError(), testing::HasSubstr(text));
  }
}

// ---- Updates.

// Bit for bit, since the order is given.
TEST_P(NnKernelsTest, IndexAdd) {
  struct Shape {
    std::int64_t outer, size, count, inner;
  };
  const Shape shapes[] = {{1, 5, 40, 3},  {3, 7, 20, 5},    {1, 1, 9, 1},
                          {1, 50, 4, 1},  {2, 3, 0, 4},     {4, 10, 1, 1},
                          {1, 6, 0, 1},   {1, 400, 700, 2}, {3, 4, 5, 0},
                          {300, 6, 19, 1}};
  ForBoth([&](auto zero) {
    using T = decltype(zero);
    for (const IndexOp op : {IndexOp::kSelect, IndexOp::kGather}) {
      for (const Shape& s : shapes) {
        const bool gather = op == IndexOp::kGather;
        const std::int64_t numel = s.outer * s.count * s.inner;
        const Doubles source = Random<T>(numel);
        const Doubles index = RandomBelow(gather ? numel : s.count, s.size);
        Doubles expected = Random<T>(s.outer * s.size * s.inner);
        Array<T> out(stream(), expected), source_array(stream(), source);
        Array<std::int64_t> index_array(stream(), index);
        for (std::int64_t e = 0; e < numel; ++e) {
          const std::int64_t j = e % s.inner;
          const std::int64_t i = e / s.inner % s.count;
          const std::int64_t o = e / s.inner / s.count;
          const auto row = static_cast<std::int64_t>(index[gather ? e : i]);
          double& to = expected[(o * s.size + row) * s.inner + j];
          to = static_cast<T>(static_cast<T>(to) + static_cast<T>(source[e]));
        }
        SCOPED_TRACE(&s - shapes);
        Enqueue(stream(), label_,
                IndexAddArgs{op, DTypeOf<T>::value, out.data(),
                             index_array.data(), source_array.data(), s.outer,
                             s.size, s.count, s.inner});
        EXPECT_EQ(out.Read(), expected);
      }
    }
  });
}

TEST_P(NnKernelsTest, AnIndexOutOfRangeFailsLate) {
  Array<float> out(stream(), Doubles(6, 1)), source(stream(), Doubles(6, 1));
  Array<std::int64_t> index(stream(), {0, 1, 3, 1, 0, 1});
  const std::string text = "index 3 at position 2 is out of range";
  for (const std::int64_t inner : {0, 1, 2}) {
    Enqueue(stream(), label_,
            IndexAddArgs{IndexOp::kSelect, DType::kFloat32, out.data(),
                         index.data(), source.data(), 1, 3, 3, inner});
    EXPECT_THAT(LateError(), testing::HasSubstr(text)) << inner;
  }
  for (const std::int64_t inner : {1, 2}) {
    Enqueue(stream(), label_,
            IndexAddArgs{IndexOp::kGather, DType::kFloat32, out.data(),
                         index.data(), source.data(), 1, 3, 3, inner});
    EXPECT_THAT(LateError(), testing::HasSubstr(text)) << inner;
  }
}

TEST_P(NnKernelsTest, Axpby) {
  ForBoth([this](auto zero) {
    using T = decltype(zero);
    constexpr DType kDType = DTypeOf<T>::value;
    for (const std::int64_t n : {0, 1, 7, 1000}) {
      const Doubles x = Random<T>(n), y = Random<T>(n);
      for (const double beta : {0.0, 1.0, -0.7}) {
        const T a = static_cast<T>(0.3), b = static_cast<T>(beta);
        Doubles expected, onto_itself;
        for (std::int64_t i = 0; i < n; ++i) {
          const T scaled = a * static_cast<T>(x[i]);
          expected.push_back(beta == 0 ? scaled
                                       : scaled + b * static_cast<T>(y[i]));
          onto_itself.push_back(beta == 0 ? scaled
                                          : scaled + b * static_cast<T>(x[i]));
        }
        SCOPED_TRACE(n);
        Array<T> x_array(stream(), x);
        // With beta = 0 it is not read.
        Array<T> out(stream(), beta == 0 ? Doubles(n, std::nan("")) : y);
        Enqueue(stream(), label_,
                AxpbyArgs{kDType, n, 0.3, beta, out.data(), x_array.data()});
        EXPECT_EQ(out.Read(), expected);
        Enqueue(
            stream(), label_,
            AxpbyArgs{kDType, n, 0.3, beta, x_array.data(), x_array.data()});
        EXPECT_EQ(x_array.Read(), onto_itself);
      }
    }
  });
}

// More arrays than a launch takes, at any address.
TEST_P(NnKernelsTest, AxpbyOfLists) {
  ForBoth([this](auto zero) {
    using T = decltype(zero);
    for (const std::size_t count : {0, 2, 96, 97, 193}) {
      for (const double beta : {0.0, -0.7}) {
        std::vector<Array<T>> x, out;
        std::vector<Doubles> expected;
        std::vector<AxpbyPart> parts;
        for (std::size_t i = 0; i < count; ++i) {
          const std::int64_t n = i == 5 ? 3001 : i * 7 % 23;
          const std::int64_t from = std::min<std::int64_t>(i % 3, n);
          const Doubles xs = Random<T>(n), ys = Random<T>(n);
          x.emplace_back(stream(), xs);
          out.emplace_back(stream(), ys);
          parts.push_back({n - from, out.back().data() + from,
                           x.back().data() + (i % 4 == 3 ? 0 : from)});
          expected.push_back(ys);
          for (std::int64_t e = from; e < n; ++e) {
            const T scaled = static_cast<T>(0.3) *
                             static_cast<T>(xs[i % 4 == 3 ? e - from : e]);
            expected[i][e] = beta == 0 ? scaled
                                       : scaled + static_cast<T>(beta) *
                                                      static_cast<T>(ys[e]);
          }
        }
        Enqueue(stream(), label_,
                AxpbyListArgs{DTypeOf<T>::value, 0.3, beta, parts});
        std::fill(parts.begin(), parts.end(), AxpbyPart{});
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(out[i].Read(), expected[i]) << i << " of " << count;
        }
      }
    }
  });
}

// ---- Random numbers.

// Element i of a draw, by philox.h. Word: which one or two of a block make it.
template <typename T, typename Word>
double WholeNumberAt(std::int64_t i, const RandomArgs& args) {
  constexpr std::int64_t kPerBlock = kElementsPerBlock<Word>;
  Word words[kPerBlock];
  Words(Philox(args.state.seed, args.state.offset + i / kPerBlock), words);
  return static_cast<double>(static_cast<T>(
      args.low +
      static_cast<std::int64_t>(Scaled(words[i % kPerBlock], args.range))));
}

template <typename T>
double RealNumberAt(std::int64_t i, const RandomArgs& args) {
  constexpr std::int64_t kPerBlock = kElementsPerBlock<T>;
  const PhiloxBlock block =
      Philox(args.state.seed, args.state.offset + i / kPerBlock);
  T made[kPerBlock];
  args.op == RandomOp::kUniform ? Uniforms(block, made) : Normals(block, made);
  return static_cast<double>(made[i % kPerBlock]);
}

TEST_P(NnKernelsTest, RandomNumbersAreWhatPhiloxSays) {
  // Block indices wrap around within the call.
  const RandomState state = {0x123456789ABCDEF, ~std::uint64_t{0} - 5};
  const auto check = [&](auto zero, RandomArgs args, auto at) {
    using T = decltype(zero);
    for (const std::int64_t n : {0, 1, 3, 4, 5, 1003}) {
      // Behind three more, four are aligned, and stored at once.
      for (const std::int64_t before : {0, 3}) {
        Array<T> out(stream(), Doubles(before + n, 99));
        args.dtype = DTypeOf<T>::value;
        args.numel = n;
        args.out = out.data() + before;
        args.state = state;
        Enqueue(stream(), label_, args);
        Doubles expected(before, 99);
        for (std::int64_t i = 0; i < n; ++i) expected.push_back(at(i, args));
        EXPECT_EQ(out.Read(), expected) << OpName(args.op) << args.range;
      }
    }
  };
  ForBoth([&](auto zero) {
    using T = decltype(zero);
    for (const RandomOp op : {RandomOp::kUniform, RandomOp::kNormal}) {
      check(zero, {op, {}, 0, nullptr, {}, 0, 1}, RealNumberAt<T>);
    }
  });
  for (const std::uint64_t range :
       {std::uint64_t{1}, std::uint64_t{255}, std::uint64_t{1} << 32}) {
    const RandomArgs args = {RandomOp::kInteger, {}, 0, nullptr, {}, 0, range};
    check(float{}, args, WholeNumberAt<float, std::uint32_t>);
    check(double{}, args, WholeNumberAt<double, std::uint32_t>);
    check(std::int64_t{}, args, WholeNumberAt<std::int64_t, std::uint32_t>);
    if (range > 256) continue;
    check(std::uint8_t{}, args, WholeNumberAt<std::uint8_t, std::uint32_t>);
  }
  for (const std::uint64_t range :
       {(std::uint64_t{1} << 32) + 1, std::uint64_t{1} << 53}) {
    const RandomArgs args = {RandomOp::kInteger, {}, 0, nullptr, {}, -7, range};
    check(double{}, args, WholeNumberAt<double, std::uint64_t>);
    check(std::int64_t{}, args, WholeNumberAt<std::int64_t, std::uint64_t>);
  }
}

// ---- Several operations.

// where(x < row, x * one, 7) and the comparison, of all sizes that are no
// multiple of anything.
TEST_P(NnKernelsTest, FusedSteps) {
  using Ref = FusedArgs::Ref;
  using Step = FusedArgs::Step;
  const Ref x = {Ref::kEach, 0}, row = {Ref::kRow, 1}, one = {Ref::kOne, 2},
            seven = {Ref::kNumber, 0}, slot = {Ref::kSlot, 7},
            result = {Ref::kEach, 3}, less = {Ref::kEach, 4};
  for (const std::int64_t rows : {1, 7, 301, 1000}) {
    constexpr std::uint32_t kColumns = 13;
    const std::int64_t numel = rows * kColumns;
    const Doubles xs = Random<float>(numel), limits = Random<float>(kColumns);
    Array<float> x_array(stream(), xs), row_array(stream(), limits),
        one_array(stream(), {2.5}), result_array(stream(), Doubles(numel));
    Array<std::uint8_t> less_array(stream(), Doubles(numel));
    FusedArgs args = {};
    args.numel = numel;
    args.memory[0] = {x_array.data(), 0, false};
    args.memory[1] = {row_array.data(), kColumns, false};
    args.memory[2] = {one_array.data(), 0, false};
    args.memory[3] = {result_array.data(), 0, false};
    args.memory[4] = {less_array.data(), 0, true};
    args.numbers[0] = 7;
    const auto add = [&](Step::Kind kind, BinaryOp op, Ref out, Ref a, Ref b,
                         Ref c) {
      args.step[args.steps++] = {
          kind, static_cast<std::uint8_t>(op), out, {a, b, c}};
    };
    add(Step::kBinary, BinaryOp::kLess, less, x, row, {});
    add(Step::kBinary, BinaryOp::kMultiply, slot, x, one, {});
    add(Step::kWhere, {}, result, less, slot, seven);
    cuda::Enqueue(stream(), OpLabel("fused"), args);
    const Doubles results = result_array.Read(),
                  comparisons = less_array.Read();
    for (std::int64_t i = 0; i < numel; ++i) {
      const bool is_less = xs[i] < limits[i % kColumns];
      ASSERT_EQ(comparisons[i], is_less) << i;
      ASSERT_EQ(results[i], is_less ? static_cast<float>(xs[i]) * 2.5f : 7.0f)
          << i;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NnKernelsTest);
INSTANTIATE_TEST_SUITE_P(All, NnKernelsTest, testing::ValuesIn(Gpus()),
                         DeviceTestName);

}  // namespace
}  // namespace d2l::kernels
