// Layers for images, and the networks made of them.

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/autograd/tape.h"
#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/nn/functional.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::nn {
namespace {

using testing::HasSubstr;

class ImageLayersTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(ImageLayersTest);

// The text that PyTorch 2.15.0 prints for the same modules.
TEST(ImageLayersPrintTest, AsPyTorch) {
  EXPECT_EQ(ToString(Conv2d(1, 20, 3)),
            "Conv2d(1, 20, kernel_size=(3, 3), stride=(1, 1))");
  EXPECT_EQ(ToString(Conv2d(2, 4, {3, 1}, {{2, 1}, {1, 0}}, false)),
            "Conv2d(2, 4, kernel_size=(3, 1), stride=(2, 1), padding=(1, 0), "
            "bias=False)");
  EXPECT_EQ(ToString(AvgPool2d(2, 2)),
            "AvgPool2d(kernel_size=2, stride=2, padding=0)");
  EXPECT_EQ(ToString(AvgPool2d(Size2d(3, 2))),
            "AvgPool2d(kernel_size=(3, 2), stride=(3, 2), padding=0)");
  EXPECT_EQ(ToString(MaxPool2d(3, 2, 1)),
            "MaxPool2d(kernel_size=3, stride=2, padding=1, dilation=1, "
            "ceil_mode=False)");
  EXPECT_EQ(ToString(GlobalAvgPool2d()), "GlobalAvgPool2d()");
  EXPECT_EQ(ToString(BatchNorm2d(64)),
            "BatchNorm2d(64, eps=1e-05, momentum=0.1, affine=True, "
            "track_running_stats=True)");
  EXPECT_EQ(ToString(Residual(3, 6, true, 2)), R"(Residual(
  (conv1): Conv2d(3, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))
  (conv2): Conv2d(6, 6, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))
  (conv3): Conv2d(3, 6, kernel_size=(1, 1), stride=(2, 2))
  (bn1): BatchNorm2d(6, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
  (bn2): BatchNorm2d(6, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
))");
  EXPECT_EQ(ToString(LeNet()), R"(Sequential(
  (0): Conv2d(1, 20, kernel_size=(3, 3), stride=(1, 1))
  (1): ReLU()
  (2): AvgPool2d(kernel_size=2, stride=2, padding=0)
  (3): Conv2d(20, 50, kernel_size=(5, 5), stride=(1, 1))
  (4): ReLU()
  (5): AvgPool2d(kernel_size=2, stride=2, padding=0)
  (6): Flatten(start_dim=1, end_dim=-1)
  (7): Linear(in_features=800, out_features=128, bias=True)
  (8): ReLU()
  (9): Linear(in_features=128, out_features=10, bias=True)
))");
}

TEST_P(ImageLayersTest, TheyAreTheirFunctions) {
  const Tensor x = RandomTensor({3, 2, 7, 5}, device());
  const Conv2dOptions options = {{2, 1}, {1, 0}};
  Conv2d conv(2, 4, {3, 2}, options, true, device());
  const std::vector<Tensor> p = Parameters(conv);
  EXPECT_TRUE(Equal(conv(x), d2l::Conv2d(x, p[0], p[1], options)));
  Conv2d without(2, 4, {3, 2}, options, false, device());
  EXPECT_TRUE(Equal(without(x),
                    d2l::Conv2d(x, Parameters(without)[0], Tensor(), options)));
  EXPECT_EQ(NumParameters(without), 4 * 2 * 3 * 2);
  EXPECT_TRUE(Equal(AvgPool2d(3)(x), d2l::AvgPool2d(x, 3)));
  EXPECT_TRUE(Equal(AvgPool2d({3, 2}, 1, 1)(x),
                    d2l::AvgPool2d(x, {3, 2}, Size2d(1), 1)));
  EXPECT_TRUE(Equal(MaxPool2d(3, 2, 1)(x), d2l::MaxPool2d(x, 3, Size2d(2), 1)));
  const Tensor mean = GlobalAvgPool2d()(x);
  EXPECT_TRUE(Equal(mean, Mean(x, {2, 3}, /*keepdim=*/true)));
  EXPECT_EQ(mean.shape(), (Shape{3, 2, 1, 1}));
  EXPECT_THAT(
      ThrownText([&] { GlobalAvgPool2d()(Select(x, 0, 0)); }),
      HasSubstr("[GlobalAvgPool2d] expected 4D input, (batch, channels,"
                " height, width); got a float32 tensor of shape (2, 7"));
}

TEST_P(ImageLayersTest, FirstValuesAreUniform) {
  ManualSeed(1, device());
  Conv2d conv(25, 64, {2, 2}, {}, true, device());
  for (const Tensor& x : Parameters(conv)) {
    double low = 0, high = 0;
    for (const double value : ValuesOf(x)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
    EXPECT_GE(low, -0.1);  // 1 / sqrt(25 * 4)
    EXPECT_LE(high, 0.1);
    EXPECT_LT(low, -0.09);
    EXPECT_GT(high, 0.09);
  }
}

TEST_P(ImageLayersTest, AreCloned) {
  Sequential net(Conv2d(1, 2, {3, 2}, {1, {1, 0}}, false, device()),
                 AvgPool2d({2, 1}, 1, {1, 0}), MaxPool2d(2, 1),
                 Conv2d(2, 3, 2, {}, true, device()),
                 BatchNorm2d(3, 1e-5, 0.1, device()),
                 Residual(3, 4, true, 2, device()), GlobalAvgPool2d());
  net.Eval();
  const Tensor x = RandomTensor({2, 1, 6, 7}, device());
  const std::unique_ptr<Module> copy = Clone(net, device());
  EXPECT_EQ(ToString(*copy), ToString(net));
  EXPECT_TRUE(Equal((*copy)(x), net(x)));
  // New makes it on the same device: there may be no other.
  for (const auto& [name, tensor] : NamedState(*net.New())) {
    EXPECT_EQ(tensor.device(), device()) << name;
  }
}

// The shape after each child.
std::vector<Shape> ShapesIn(Sequential& net, Tensor x) {
  std::vector<Shape> shapes;
  for (int i = 0; i < net.size(); ++i) {
    x = net[i](x);
    shapes.push_back(x.shape());
  }
  return shapes;
}

TEST_P(ImageLayersTest, LeNetIsTheBooks) {
  Sequential net = LeNet(device());
  EXPECT_EQ(NumParameters(net), 129068);
  EXPECT_EQ(ShapesIn(net, Ones({2, 1, 28, 28}, device())),
            (std::vector<Shape>{{2, 20, 26, 26},
                                {2, 20, 26, 26},
                                {2, 20, 13, 13},
                                {2, 50, 9, 9},
                                {2, 50, 9, 9},
                                {2, 50, 4, 4},
                                {2, 800},
                                {2, 128},
                                {2, 128},
                                {2, 10}}));
  EXPECT_EQ(net(Ones({0, 1, 28, 28}, device())).shape(), (Shape{0, 10}));
}

double Mean(const std::vector<double>& values, std::size_t from,
            std::size_t to) {
  double sum = 0;
  for (std::size_t i = from; i < to; ++i) sum += values[i];
  return sum / static_cast<double>(to - from);
}

TEST_P(ImageLayersTest, LeNetLearns) {
  ManualSeed(1, device());
  Sequential net = LeNet(device());
  InitXavierUniform(net);
  SGD sgd(Parameters(net), {/*lr=*/0.1, /*momentum=*/0.9});
  const Dataset images = GenerateImages(8);
  DataLoader loader(images, {/*batch_size=*/4}, device());
  std::vector<double> losses;
  while (losses.size() < 30) {
    const std::optional<Batch> batch = loader.Next();
    if (!batch.has_value()) continue;
    GradientTape tape(Parameters(net));
    const Tensor loss = CrossEntropyLoss(net(batch->images), batch->labels);
    sgd.Step(tape.Backward(loss));
    losses.push_back(Item(loss));
  }
  EXPECT_NEAR(Mean(losses, 0, 3), std::log(10), 0.5);
  EXPECT_LT(Mean(losses, 24, 30), 0.5 * Mean(losses, 0, 3));
}

TEST_P(ImageLayersTest, LeNetIsCompiled) {
  ManualSeed(1, device());
  Hybrid net = Hybridize(LeNet(device()));
  const Tensor x = RandomTensor({3, 1, 28, 28}, device());
  const Tensor expected = net.module()(x);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Equal(net(x), expected));
}

// The means and variances (with `less` fewer in the denominator) of the
// channels of x, of shape (n, c, h, w).
std::pair<std::vector<double>, std::vector<double>> Statistics(const Tensor& x,
                                                               int less) {
  const std::int64_t n = x.size(0), c = x.size(1), hw = x.size(2) * x.size(3);
  const std::vector<double> values = ValuesOf(x);
  std::vector<double> means, variances;
  for (std::int64_t k = 0; k < c; ++k) {
    double sum = 0, squares = 0;
    const auto for_each = [&](auto&& f) {
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < hw; ++j) f(values[(i * c + k) * hw + j]);
      }
    };
    for_each([&](double v) { sum += v; });
    const auto count = static_cast<double>(n * hw);
    means.push_back(sum / count);
    for_each([&](double v) { squares += (v - means[k]) * (v - means[k]); });
    variances.push_back(squares / (count - less));
  }
  return {means, variances};
}

TEST_P(ImageLayersTest, BatchNormHasRunningValues) {
  BatchNorm2d norm(3, /*eps=*/1e-5, /*momentum=*/0.2, device());
  To(norm, DType::kFloat64);
  const std::vector<Tensor> p = Parameters(norm);
  CopyTo(RandomTensor({3}, device(), DType::kFloat64), p[0]);
  CopyTo(RandomTensor({3}, device(), DType::kFloat64), p[1]);
  std::vector<double> mean(3, 0), variance(3, 1);
  const auto check = [&](const Tensor& x, const std::vector<double>& means,
                         const std::vector<double>& variances) {
    const std::vector<double> weight = ValuesOf(p[0]), bias = ValuesOf(p[1]);
    const std::vector<double> values = ValuesOf(x);
    const std::int64_t hw = x.size(2) * x.size(3);
    std::vector<double> expected;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t k = i / hw % 3;
      expected.push_back((values[i] - means[k]) /
                             std::sqrt(variances[k] + 1e-5) * weight[k] +
                         bias[k]);
    }
    EXPECT_TRUE(IsNear(norm(x), x.shape(), DType::kFloat64, expected,
                       std::vector<double>(expected.size(), 1e-9)));
  };
  for (int step = 0; step < 3; ++step) {
    const Tensor x =
        RandomTensor({4, 3, 2, 5}, device(), DType::kFloat64) * (step + 1) +
        step;
    const auto [means, biased] = Statistics(x, 0);
    check(x, means, biased);
    const std::vector<double> unbiased = Statistics(x, 1).second;
    for (int k = 0; k < 3; ++k) {
      mean[k] = 0.8 * mean[k] + 0.2 * means[k];
      variance[k] = 0.8 * variance[k] + 0.2 * unbiased[k];
    }
  }
  const auto buffers = NamedBuffers(norm);
  EXPECT_EQ(buffers[0].first, "running_mean");
  EXPECT_TRUE(IsNear(buffers[0].second, {3}, DType::kFloat64, mean,
                     std::vector<double>(3, 1e-9)));
  EXPECT_EQ(buffers[1].first, "running_var");
  EXPECT_TRUE(IsNear(buffers[1].second, {3}, DType::kFloat64, variance,
                     std::vector<double>(3, 1e-9)));
  EXPECT_EQ(buffers[2].first, "num_batches_tracked");
  EXPECT_EQ(Item<std::int64_t>(buffers[2].second), 3);
  // Eval uses the running values, and does not change them.
  norm.Eval();
  check(RandomTensor({1, 3, 1, 1}, device(), DType::kFloat64), mean, variance);
  EXPECT_EQ(Item<std::int64_t>(buffers[2].second), 3);
}

TEST_P(ImageLayersTest, BatchNormRefuses) {
  BatchNorm2d norm(3, 1e-5, 0.1, device());
  EXPECT_THAT(
      ThrownText([&] {
        norm(Ones({1, 3, 1, 1}, device()));
      }),
      HasSubstr("Expected more than 1 value per channel when training, got "
                "input size (1, 3, 1, 1)"));
  EXPECT_THAT(
      ThrownText([&] {
        norm(Ones({2, 3}, device()));
      }),
      HasSubstr("[BatchNorm2d] expected 4D input, (batch, channels, "
                "height, width); got a float32 tensor of shape (2, 3)"));
  EXPECT_THROW(norm(Ones({2, 4, 2, 2}, device())), std::invalid_argument);
  // The batch was not counted.
  EXPECT_EQ(Item(NamedBuffers(norm)[2].second), 0);
}

TEST_P(ImageLayersTest, ResidualAddsItsInput) {
  const Tensor x = RandomTensor({2, 4, 6, 5}, device());
  for (const bool use_1x1conv : {false, true}) {
    Residual block(4, 4, use_1x1conv, use_1x1conv ? 2 : 1, device());
    block.Eval();
    // The second normalisation gives zeros.
    for (const auto& [name, p] : NamedParameters(block)) {
      if (name == "bn2.weight") CopyTo(ZerosLike(p), p);
    }
    Tensor expected = x;
    if (use_1x1conv) {
      const auto state = NamedParameters(block);
      ASSERT_EQ(state[4].first, "conv3.weight");
      expected = d2l::Conv2d(x, state[4].second, state[5].second, {2, 0});
    }
    EXPECT_TRUE(Equal(block(x), Relu(expected)));
  }
}

TEST_P(ImageLayersTest, ResNet18IsTheBooks) {
  Sequential net = ResNet18(10, 1, device());
  EXPECT_EQ(NumParameters(net), 11175818);
  const Tensor x = RandomTensor({2, 1, 28, 28}, device());
  EXPECT_EQ(ShapesIn(net, x), (std::vector<Shape>{{2, 64, 28, 28},
                                                  {2, 64, 28, 28},
                                                  {2, 64, 28, 28},
                                                  {2, 64, 28, 28},
                                                  {2, 128, 14, 14},
                                                  {2, 256, 7, 7},
                                                  {2, 512, 4, 4},
                                                  {2, 512, 1, 1},
                                                  {2, 10}}));
  const auto state = NamedState(net);
  // 20 convolutions, 17 normalisations, a linear layer.
  EXPECT_EQ(state.size(), 20u * 2 + 17u * 5 + 2u);
  EXPECT_EQ(NamedBuffers(net)[3].first, "resnet_block1.0.bn1.running_mean");
  EXPECT_EQ(NamedParameters(net)[4].first, "resnet_block1.0.conv1.weight");
  EXPECT_EQ(state.back().first, "fc.1.bias");
  net.Eval();
  const std::unique_ptr<Module> copy = Clone(net, device());
  EXPECT_TRUE(Equal((*copy)(x), net(x)));
}

// The results, and the running values, are those of eager steps.
TEST_P(ImageLayersTest, ACompiledBatchNormIsTrained) {
  Hybrid net = Hybridize(Sequential(Conv2d(1, 3, 3, {}, true, device()),
                                    BatchNorm2d(3, 1e-5, 0.1, device()), ReLU(),
                                    Residual(3, 3, false, 1, device())));
  const std::unique_ptr<Module> eager = Clone(net.module(), device());
  for (int step = 0; step < 4; ++step) {
    if (step == 3) {
      net.Eval();
      eager->Eval();
    }
    const Tensor x = RandomTensor({4, 1, 6, 6}, device());
    EXPECT_TRUE(Equal(net(x), (*eager)(x))) << step;
    const auto got = NamedBuffers(net), expected = NamedBuffers(*eager);
    ASSERT_EQ(got.size(), 9u);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(Equal(got[i].second, expected[i].second)) << got[i].first;
    }
  }
  EXPECT_EQ(net.Report().programs.size(), 2u);
}

// The gradient goes through batch normalisation, too.
TEST_P(ImageLayersTest, ResidualNetworksLearn) {
  ManualSeed(2, device());
  Sequential net(Conv2d(1, 8, 3, {1, 1}, true, device()),
                 BatchNorm2d(8, 1e-5, 0.1, device()), ReLU(),
                 Residual(8, 16, true, 2, device()), GlobalAvgPool2d(),
                 Flatten(), Linear(16, 10, true, device()));
  SGD sgd(Parameters(net), {/*lr=*/0.1, /*momentum=*/0.9});
  const Dataset images = GenerateImages(16);
  DataLoader loader(images, {/*batch_size=*/16}, device());
  const Batch batch = *loader.Next();
  std::vector<double> losses;
  for (int step = 0; step < 20; ++step) {
    GradientTape tape(Parameters(net));
    const Tensor loss = CrossEntropyLoss(net(batch.images), batch.labels);
    sgd.Step(tape.Backward(loss));
    losses.push_back(Item(loss));
  }
  EXPECT_LT(losses.back(), 0.9 * losses.front());
}

}  // namespace
}  // namespace d2l::nn
