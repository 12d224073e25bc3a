// The kernel against loops that add in the order it promises, for sizes that
// IsImplicit would not choose, too.

#include "common/kernels/cuda/index/implicit_conv.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/device/testing/testing.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

using Floats = std::vector<float>;

struct Sizes {
  std::int64_t batch, in, out, height, width, kernel_height, kernel_width;
  std::int64_t stride_height = 1, stride_width = 1;
  std::int64_t padding_height = 0, padding_width = 0;
};

Conv2dArgs ArgsOf(const Sizes& s, Conv2dPass pass) {
  Conv2dArgs args = {};
  args.pass = pass;
  args.dtype = DType::kFloat32;
  args.batch = s.batch;
  args.in_channels = s.in;
  args.out_channels = s.out;
  args.window = {
      s.height,
      s.width,
      (s.height + 2 * s.padding_height - s.kernel_height) / s.stride_height + 1,
      (s.width + 2 * s.padding_width - s.kernel_width) / s.stride_width + 1,
      s.kernel_height,
      s.kernel_width,
      s.stride_height,
      s.stride_width,
      s.padding_height,
      s.padding_width};
  return args;
}

// Calls f(h, w, tap) for each element of a window, in padding, too.
template <typename F>
void ForEachTap(const Window2d& w, std::int64_t row, std::int64_t column, F f) {
  for (std::int64_t tap = 0; tap < w.kernel_height * w.kernel_width; ++tap) {
    f(row * w.stride_height - w.padding_height + tap / w.kernel_width,
      column * w.stride_width - w.padding_width + tap % w.kernel_width, tap);
  }
}

Floats Forward(const Conv2dArgs& args, const Floats& x, const Floats& weight,
               const Floats& bias) {
  const Window2d& w = args.window;
  const std::int64_t taps = w.kernel_height * w.kernel_width;
  Floats y;
  for (std::int64_t n = 0; n < args.batch; ++n) {
    for (std::int64_t o = 0; o < args.out_channels; ++o) {
      for (std::int64_t at = 0; at < w.out_height * w.out_width; ++at) {
        float sum = 0;
        for (std::int64_t c = 0; c < args.in_channels; ++c) {
          ForEachTap(
              w, at / w.out_width, at % w.out_width,
              [&](std::int64_t i, std::int64_t j, std::int64_t tap) {
                const bool inside =
                    i >= 0 && i < w.height && j >= 0 && j < w.width;
                const std::int64_t image = n * args.in_channels + c;
                sum = std::fma(
                    weight[(o * args.in_channels + c) * taps + tap],
                    inside ? x[(image * w.height + i) * w.width + j] : 0.0f,
                    sum);
              });
        }
        y.push_back(bias.empty() ? sum : sum + bias[o]);
      }
    }
  }
  return y;
}

// At stride 1: a convolution of dy with the kernels turned, whose channels and
// outputs change places.
Floats InputGradient(const Conv2dArgs& args, const Floats& dy,
                     const Floats& weight) {
  const Window2d& w = args.window;
  const std::int64_t taps = w.kernel_height * w.kernel_width;
  Floats turned;
  for (std::int64_t c = 0; c < args.in_channels; ++c) {
    for (std::int64_t o = 0; o < args.out_channels; ++o) {
      for (std::int64_t tap = taps - 1; tap >= 0; --tap) {
        turned.push_back(weight[(o * args.in_channels + c) * taps + tap]);
      }
    }
  }
  Conv2dArgs transposed = args;
  transposed.in_channels = args.out_channels;
  transposed.out_channels = args.in_channels;
  transposed.window = {w.out_height,
                       w.out_width,
                       w.height,
                       w.width,
                       w.kernel_height,
                       w.kernel_width,
                       1,
                       1,
                       w.kernel_height - 1 - w.padding_height,
                       w.kernel_width - 1 - w.padding_width};
  return Forward(transposed, dy, turned, {});
}

class ImplicitConvKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const Device device : AllDevices()) {
      if (device.type() != DeviceType::kCuda) continue;
      stream_ = static_cast<CudaStream*>(&DefaultStream(device));
      return;
    }
    GTEST_SKIP() << "no GPU, and no model of one";
  }

  StorageRef Upload(const Floats& values) {
    const std::size_t bytes = values.size() * sizeof(float);
    StorageRef to = Memory(stream_->device()).Allocate(bytes, *stream_);
    stream_->CopyAsync(to->data(), values.data(), bytes,
                       CopyKind::kHostToDevice);
    stream_->Synchronize();
    return to;
  }

  // What the kernel computes, between two guards, on vectors' addresses and
  // beside them in turn.
  Floats Run(Conv2dArgs args, std::size_t numel, const Floats& first,
             const Floats& second, const Floats& bias) {
    Floats out(numel + 5, 77);
    before_ = 5 - before_;
    const StorageRef to = Upload(out), a = Upload(first), b = Upload(second),
                     c = Upload(bias);
    args.out = static_cast<float*>(to->data()) + before_;
    args.first = a->data();
    args.second = b->data();
    args.bias = bias.empty() ? nullptr : c->data();
    stream_->Launch(OpLabel("conv2d"), [&](const CudaLaunch& launch) {
      LaunchImplicitConv(launch, args);
    });
    stream_->CopyAsync(out.data(), to->data(), out.size() * sizeof(float),
                       CopyKind::kDeviceToHost);
    stream_->Synchronize();
    EXPECT_EQ(out[before_ - 1], 77);
    EXPECT_EQ(out[before_ + numel], 77);
    return Floats(out.data() + before_, out.data() + before_ + numel);
  }

  std::int64_t Any(const std::vector<std::int64_t>& of) {
    return of[random_() % of.size()];
  }

  // With `far`, some are huge, tiny, infinite or NaN.
  Floats Random(std::int64_t count, bool far) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const float kFar[] = {1e38f, -1e30f, 1e-40f, kInf, -kInf, std::nanf("")};
    std::normal_distribution<float> normal(0.3f, 1);
    Floats values(static_cast<std::size_t>(count));
    for (float& value : values) {
      value = far && random_() % 200 == 0 ? kFar[random_() % std::size(kFar)]
                                          : normal(random_);
    }
    return values;
  }

  void Check(const Sizes& s, bool far = false) {
    SCOPED_TRACE(testing::Message()
                 << s.batch << " images (" << s.in << ", " << s.height << ", "
                 << s.width << "), to " << s.out << ", kernel ("
                 << s.kernel_height << ", " << s.kernel_width << "), stride ("
                 << s.stride_height << ", " << s.stride_width << "), padding ("
                 << s.padding_height << ", " << s.padding_width << ")");
    const Conv2dArgs args = ArgsOf(s, Conv2dPass::kForward);
    ASSERT_TRUE(FitsImplicit(args));
    const Floats x = Random(s.batch * s.in * s.height * s.width, far);
    const Floats weight =
        Random(s.out * s.in * s.kernel_height * s.kernel_width, far);
    for (const Floats& bias : {Random(s.out, far), Floats()}) {
      const Floats y = Forward(args, x, weight, bias);
      ExpectSame(Run(args, y.size(), x, weight, bias), y);
    }
    if (s.stride_height != 1 || s.stride_width != 1) return;
    const Floats dy = Random(
        s.batch * s.out * args.window.out_height * args.window.out_width, far);
    ExpectSame(
        Run(ArgsOf(s, Conv2dPass::kInputGradient), x.size(), dy, weight, {}),
        InputGradient(args, dy, weight));
  }

  static void ExpectSame(const Floats& got, const Floats& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(got[i])) << "element " << i << ": " << got[i];
      } else {
        ASSERT_EQ(got[i], expected[i]) << "element " << i;
      }
    }
  }

 private:
  CudaStream* stream_ = nullptr;
  std::size_t before_ = 1;  // or 4
  std::mt19937 random_{11};
};

TEST_F(ImplicitConvKernelTest, OddSizes) {
  for (int round = 0; round < 60; ++round) {
    const std::vector<std::int64_t> channels = {1, 3, 5, 6, 16, 17, 33};
    Sizes s = {Any({1, 2, 3}),        Any(channels),      Any(channels),
               Any({1, 2, 5, 8, 33}), Any({1, 3, 7, 29}), Any({1, 3, 5}),
               Any({1, 2, 3, 5}),     Any({1, 1, 2}),     Any({1, 1, 2}),
               Any({0, 1, 2}),        Any({0, 1, 2})};
    // The kernel fits into the image.
    s.kernel_height =
        std::min(s.kernel_height, s.height + 2 * s.padding_height);
    s.kernel_width = std::min(s.kernel_width, s.width + 2 * s.padding_width);
    Check(s, /*far=*/round % 3 == 0);
    if (HasFatalFailure()) return;
  }
  Check({0, 3, 5, 7, 7, 3, 3});
  // More padding than the gradient's windows reach, and windows of all sizes.
  Check({2, 3, 4, 3, 3, 1, 1, 1, 1, 2, 1});
  Check({1, 2, 3, 9, 40, 1, 32});
  Check({1, 2, 3, 40, 9, 32, 1, 3, 1, 5, 0});
}

// Patches take no memory where none are stored.
TEST_F(ImplicitConvKernelTest, NeedsNoWorkspace) {
  Conv2dArgs args = ArgsOf({64, 1, 20, 28, 28, 3, 3}, Conv2dPass::kForward);
  EXPECT_EQ(WorkspaceBytes(args), 0u);
  args.pass = Conv2dPass::kWeightGradient;
  EXPECT_GT(WorkspaceBytes(args), 0u);
}

// LeNets' and ResNet-18's layers, of few images, the deepest narrower.
TEST_F(ImplicitConvKernelTest, LayersOfNetworks) {
  Check({3, 1, 6, 28, 28, 5, 5, 1, 1, 2, 2});
  Check({3, 6, 16, 14, 14, 5, 5});
  Check({2, 1, 20, 28, 28, 3, 3});
  Check({2, 20, 50, 13, 13, 5, 5});
  Check({1, 1, 64, 28, 28, 3, 3, 1, 1, 1, 1});
  Check({1, 64, 64, 28, 28, 3, 3, 2, 2, 1, 1});
  Check({1, 64, 128, 28, 28, 1, 1, 2, 2});
  Check({1, 64, 130, 7, 7, 3, 3, 1, 1, 1, 1});
  Check({3, 256, 64, 4, 4, 3, 3, 1, 1, 1, 1});
}

}  // namespace
}  // namespace d2l::kernels::cuda
