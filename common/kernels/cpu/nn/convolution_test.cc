#include "common/kernels/cpu/nn/convolution.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/kernels/cpu/targets.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {
namespace {

struct Sizes {
  std::int64_t batch, in_channels, out_channels;
  std::int64_t height, width;
  std::int64_t kernel_height, kernel_width;
  std::int64_t stride_height = 1, stride_width = 1;
  std::int64_t padding_height = 0, padding_width = 0;
};

std::string Name(const Sizes& s) {
  const std::int64_t numbers[] = {
      s.batch,        s.in_channels,    s.out_channels, s.height,
      s.width,        s.kernel_height,  s.kernel_width, s.stride_height,
      s.stride_width, s.padding_height, s.padding_width};
  std::string name;
  for (const std::int64_t n : numbers) name += std::to_string(n) + " ";
  return name;
}

constexpr Conv2dPass kPasses[] = {Conv2dPass::kForward,
                                  Conv2dPass::kInputGradient,
                                  Conv2dPass::kWeightGradient};

// The operands of all passes.
template <typename T>
struct Problem {
  explicit Problem(const Sizes& s, bool has_bias = true) {
    args.dtype = sizeof(T) == 8 ? DType::kFloat64 : DType::kFloat32;
    args.batch = s.batch;
    args.in_channels = s.in_channels;
    args.out_channels = s.out_channels;
    args.window = {
        s.height,
        s.width,
        (s.height + 2 * s.padding_height - s.kernel_height) / s.stride_height +
            1,
        (s.width + 2 * s.padding_width - s.kernel_width) / s.stride_width + 1,
        s.kernel_height,
        s.kernel_width,
        s.stride_height,
        s.stride_width,
        s.padding_height,
        s.padding_width};
    Fill(s.batch * s.in_channels * s.height * s.width, x);
    Fill(s.in_channels * s.out_channels * s.kernel_height * s.kernel_width,
         weight);
    Fill(s.batch * s.out_channels * args.window.out_height *
             args.window.out_width,
         y);
    if (has_bias) Fill(s.out_channels, bias);
  }

  // Returns the result of the pass on the operands, computed by `convolve`.
  template <typename F>
  std::vector<T> Run(Conv2dPass pass, const F& convolve) const {
    const std::vector<T>& like = pass == Conv2dPass::kForward         ? y
                                 : pass == Conv2dPass::kInputGradient ? x
                                                                      : weight;
    // Each element must be written, and none beyond the end.
    std::vector<T> out(like.size() + 1,
                       std::numeric_limits<T>::signaling_NaN());
    out.back() = 7;
    Conv2dArgs call = args;
    call.pass = pass;
    call.out = out.data();
    call.first = pass == Conv2dPass::kForward ? x.data() : y.data();
    call.second =
        pass == Conv2dPass::kWeightGradient ? x.data() : weight.data();
    if (pass == Conv2dPass::kForward && !bias.empty()) call.bias = bias.data();
    convolve(call);
    EXPECT_EQ(out.back(), 7);
    out.pop_back();
    return out;
  }

  Conv2dArgs args = {};
  std::vector<T> x, weight, y, bias;

 private:
  void Fill(std::int64_t count, std::vector<T>& values) {
    std::normal_distribution<T> normal;
    values.resize(static_cast<std::size_t>(count));
    for (T& value : values) value = normal(random_);
  }

  std::mt19937 random_{42};
};

// The definition, in doubles. `magnitude` sums the terms' absolute values.
struct Reference {
  std::vector<double> value, magnitude;
};

template <typename T>
Reference Convolve(const Problem<T>& problem, Conv2dPass pass) {
  const Conv2dArgs& args = problem.args;
  const Window2d& w = args.window;
  const std::size_t size = pass == Conv2dPass::kForward ? problem.y.size()
                           : pass == Conv2dPass::kInputGradient
                               ? problem.x.size()
                               : problem.weight.size();
  Reference out = {std::vector<double>(size), std::vector<double>(size)};
  const auto add = [&out](std::int64_t i, double term) {
    out.value[static_cast<std::size_t>(i)] += term;
    out.magnitude[static_cast<std::size_t>(i)] += std::abs(term);
  };
  const auto at = [](const std::vector<T>& values, std::int64_t i) {
    return static_cast<double>(values[static_cast<std::size_t>(i)]);
  };
  for (std::int64_t n = 0; n < args.batch; ++n) {
    for (std::int64_t o = 0; o < args.out_channels; ++o) {
      for (std::int64_t oh = 0; oh < w.out_height; ++oh) {
        for (std::int64_t ow = 0; ow < w.out_width; ++ow) {
          const std::int64_t y =
              ((n * args.out_channels + o) * w.out_height + oh) * w.out_width +
              ow;
          if (pass == Conv2dPass::kForward && !problem.bias.empty()) {
            add(y, at(problem.bias, o));
          }
          for (std::int64_t c = 0; c < args.in_channels; ++c) {
            for (std::int64_t kh = 0; kh < w.kernel_height; ++kh) {
              for (std::int64_t kw = 0; kw < w.kernel_width; ++kw) {
                const std::int64_t h =
                    oh * w.stride_height - w.padding_height + kh;
                const std::int64_t v =
                    ow * w.stride_width - w.padding_width + kw;
                if (h < 0 || h >= w.height || v < 0 || v >= w.width) continue;
                const std::int64_t x =
                    ((n * args.in_channels + c) * w.height + h) * w.width + v;
                const std::int64_t k =
                    ((o * args.in_channels + c) * w.kernel_height + kh) *
                        w.kernel_width +
                    kw;
                switch (pass) {
                  case Conv2dPass::kForward:
                    add(y, at(problem.x, x) * at(problem.weight, k));
                    break;
                  case Conv2dPass::kInputGradient:
                    add(x, at(problem.y, y) * at(problem.weight, k));
                    break;
                  case Conv2dPass::kWeightGradient:
                    add(k, at(problem.y, y) * at(problem.x, x));
                    break;
                }
              }
            }
          }
        }
      }
    }
  }
  return out;
}

// `units` is in roundings of the sum of the terms' absolute values; with
// `of_largest`, of the largest such sum.
template <typename T>
void ExpectNear(const std::vector<T>& got, Reference expected, double units,
                bool of_largest) {
  ASSERT_EQ(got.size(), expected.value.size());
  if (of_largest && !got.empty()) {
    std::vector<double>& magnitude = expected.magnitude;
    std::fill(magnitude.begin(), magnitude.end(),
              *std::max_element(magnitude.begin(), magnitude.end()));
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(
        got[i], expected.value[i],
        units * std::numeric_limits<T>::epsilon() * expected.magnitude[i])
        << "element " << i;
  }
}

template <typename T>
void CheckAgainstLoops(const Sizes& sizes, double units,
                       bool of_largest = false) {
  SCOPED_TRACE(Name(sizes));
  for (const bool has_bias : {true, false}) {
    const Problem<T> problem(sizes, has_bias);
    for (const Conv2dPass pass : kPasses) {
      SCOPED_TRACE(static_cast<int>(pass));
      ExpectNear(problem.Run(pass, Conv2d<T>), Convolve(problem, pass), units,
                 of_largest);
    }
  }
}

// Odd and empty sizes, one channel, wide kernels and kernels as large as the
// image, padding that holds whole windows, planes that make groups of images
// and of rows.
const std::vector<Sizes>& AllSizes() {
  static const auto& sizes = *[] {
    auto* all = new std::vector<Sizes>{
        {0, 2, 3, 5, 5, 3, 3},
        {7, 1, 1, 1, 1, 1, 1},
        {7, 3, 5, 7, 9, 1, 1},
        {2, 3, 4, 6, 5, 6, 5},
        {2, 1, 20, 28, 28, 3, 3},
        {7, 20, 9, 13, 13, 5, 5},
        {1, 2, 3, 40, 33, 3, 5},
        {1, 2, 2, 3, 300, 2, 4},
        {9, 40, 24, 7, 7, 3, 3, 2, 2, 1, 1},
        {5, 24, 40, 8, 8, 1, 1, 2, 2},
        {2, 2, 2, 2, 1, 2, 3, 1, 3, 3, 1},
        {2, 3, 4, 3, 25, 2, 11, 1, 2, 1, 4},
        {1, 9, 3, 5, 6, 2, 6, 1, 1, 0, 0},
    };
    for (std::int64_t stride = 1; stride <= 3; ++stride) {
      for (std::int64_t padding = 0; padding <= 3; ++padding) {
        all->push_back(
            {3, 2, 3, 5, 7, 3, 2, stride, 4 - stride, padding, 3 - padding});
        all->push_back(
            {1, 1, 2, 11, 4, 4, 3, stride, stride, padding, padding});
      }
    }
    return all;
  }();
  return sizes;
}

// Convolutions computed with tiles of 4 x 4 outputs: whole and partial tiles,
// several images, more tiles than a group of 48 and than one of 192; the last
// have more kernels than are kept: few tiles for them, the most that are few,
// and too many.
const std::vector<Sizes>& WinogradSizes() {
  static const auto& sizes =
      *new std::vector<Sizes>{{0, 32, 32, 8, 8, 3, 3},
                              {7, 32, 48, 4, 4, 3, 3, 1, 1, 1, 1},
                              {2, 48, 32, 7, 9, 3, 3, 1, 1, 0, 2},
                              {3, 32, 32, 5, 12, 3, 3, 1, 1, 2, 1},
                              {5, 32, 32, 28, 27, 3, 3, 1, 1, 1, 1},
                              {1, 64, 32, 3, 6, 3, 3, 1, 1, 1, 0},
                              {2, 96, 192, 3, 4, 3, 3, 1, 1, 1, 1},
                              {3, 192, 112, 6, 7, 3, 3, 1, 1, 0, 1},
                              {33, 512, 48, 2, 4, 3, 3, 1, 1, 1, 1}};
  return sizes;
}

std::vector<Sizes> Both() {
  std::vector<Sizes> all = AllSizes();
  all.insert(all.end(), WinogradSizes().begin(), WinogradSizes().end());
  return all;
}

TEST(Conv2dTest, AgreesWithLoops) {
  for (const std::int64_t target : Targets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const ScopedTarget scope(target);
    for (const Sizes& sizes : AllSizes()) {
      CheckAgainstLoops<float>(sizes, 8);
      CheckAgainstLoops<double>(sizes, 8);
      EXPECT_FALSE(WinogradPays(Problem<float>(sizes).args));
    }
  }
}

TEST(Conv2dTest, WinogradAgreesWithLoops) {
  for (const std::int64_t target : Targets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const ScopedTarget scope(target);
    for (const Sizes& sizes : WinogradSizes()) {
      EXPECT_TRUE(WinogradPays(Problem<float>(sizes).args));
      EXPECT_FALSE(WinogradPays(Problem<double>(sizes).args));
      // Each number of a tile has the rounding errors of the whole tile.
      CheckAgainstLoops<float>(sizes, 16, /*of_largest=*/true);
    }
  }
}

// As the definition computes it: an infinity or a NaN in its place.
void ExpectLikeDefinition(const std::vector<float>& got,
                          const Reference& expected) {
  ASSERT_EQ(got.size(), expected.value.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = expected.value[i];
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    } else if (std::isinf(value)) {
      ASSERT_EQ(got[i], value) << "element " << i;
    } else {
      ASSERT_NEAR(got[i], value, 2e-3 * expected.magnitude[i])
          << "element " << i;
    }
  }
}

// One number far from the others changes the outputs whose windows hold it.
TEST(Conv2dTest, NumbersFarFromTheOthers) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const Sizes& sizes : {Sizes{1, 48, 32, 9, 11, 3, 3, 1, 1, 1, 1},
                             Sizes{1, 32, 48, 10, 9, 3, 3},
                             Sizes{1, 144, 128, 4, 8, 3, 3, 1, 1, 1, 1}}) {
    SCOPED_TRACE(Name(sizes));
    Problem<float> problem(sizes);
    ASSERT_TRUE(WinogradPays(problem.args));
    for (std::vector<float>* operand : {&problem.x, &problem.y}) {
      for (float& number : *operand) number *= 1e-3f;
    }
    for (const float far : {1e4f, 1e-30f, 3e37f, kInf, -kInf, kNan}) {
      for (std::vector<float>* operand :
           {&problem.x, &problem.y, &problem.weight}) {
        for (const std::size_t at :
             {operand->size() / 3, operand->size() - 1}) {
          SCOPED_TRACE(testing::Message()
                       << far << " at " << at << " of " << operand->size());
          // Padding times infinity is NaN.
          const bool pads = problem.args.window.padding_height > 0;
          if (pads && !std::isfinite(far) && operand == &problem.weight) {
            continue;
          }
          float& number = (*operand)[at];
          const float before = std::exchange(number, far);
          ExpectLikeDefinition(problem.Run(Conv2dPass::kForward, Conv2d<float>),
                               Convolve(problem, Conv2dPass::kForward));
          ExpectLikeDefinition(
              problem.Run(Conv2dPass::kInputGradient, Conv2d<float>),
              Convolve(problem, Conv2dPass::kInputGradient));
          // Its sums are over all images, and so are a finite number's errors.
          if (!pads && !(std::abs(far) < 1e15f)) {
            ExpectLikeDefinition(
                problem.Run(Conv2dPass::kWeightGradient, Conv2d<float>),
                Convolve(problem, Conv2dPass::kWeightGradient));
          }
          number = before;
        }
      }
    }
  }
}

std::vector<float> RunOnCores(int cores, const Problem<float>& problem,
                              Conv2dPass pass) {
  CpuStream stream(Device(DeviceType::kCpu, 0), 1, {},
                   std::make_shared<ThreadPool>(cores));
  return problem.Run(pass, [&stream](const Conv2dArgs& args) {
    Enqueue(stream, OpLabel("conv2d"), args);
    stream.Synchronize();
  });
}

TEST(Conv2dTest, SameBitsOnAnyNumberOfCores) {
  for (const Sizes& sizes : Both()) {
    SCOPED_TRACE(Name(sizes));
    const Problem<float> problem(sizes);
    for (const Conv2dPass pass : kPasses) {
      const std::vector<float> alone = problem.Run(pass, Conv2d<float>);
      for (const int cores : {2, 3}) {
        EXPECT_EQ(RunOnCores(cores, problem, pass), alone);
      }
    }
  }
}

TEST(Conv2dTest, AnImageHasTheSameBitsInAnyBatch) {
  for (const Sizes& sizes : Both()) {
    SCOPED_TRACE(Name(sizes));
    if (sizes.batch < 2) continue;
    const Problem<float> problem(sizes);
    // The batch without its first image.
    Problem<float> rest = problem;
    rest.args.batch -= 1;
    const std::size_t x = problem.x.size() / sizes.batch;
    const std::size_t y = problem.y.size() / sizes.batch;
    rest.x.erase(rest.x.begin(), rest.x.begin() + x);
    rest.y.erase(rest.y.begin(), rest.y.begin() + y);
    std::vector<float> all = problem.Run(Conv2dPass::kForward, Conv2d<float>);
    all.erase(all.begin(), all.begin() + y);
    EXPECT_EQ(rest.Run(Conv2dPass::kForward, Conv2d<float>), all);
    all = problem.Run(Conv2dPass::kInputGradient, Conv2d<float>);
    all.erase(all.begin(), all.begin() + x);
    EXPECT_EQ(rest.Run(Conv2dPass::kInputGradient, Conv2d<float>), all);
  }
}

}  // namespace
}  // namespace d2l::kernels::cpu
