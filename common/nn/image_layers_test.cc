// Layers for images, and the networks made of them.

#include "common/nn/image_layers.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/autograd/tape.h"
#include "common/data/dataset.h"
#include "common/data/generated.h"
#include "common/data/loader.h"
#include "common/nn/hybrid.h"
#include "common/nn/init.h"
#include "common/nn/loss.h"
#include "common/nn/models.h"
#include "common/nn/sgd.h"
#include "common/ops/nn/pooling.h"
#include "common/ops/ops.h"
#include "common/ops/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::nn {
namespace {

using testing::HasSubstr;

class ImageLayersTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(ImageLayersTest);

// What PyTorch 2.15.0 prints for the same modules.
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
                 Conv2d(2, 3, 2, {}, true, device()), GlobalAvgPool2d());
  const Tensor x = RandomTensor({2, 1, 6, 7}, device());
  const std::unique_ptr<Module> copy = Clone(net, device());
  EXPECT_EQ(ToString(*copy), ToString(net));
  EXPECT_TRUE(Equal((*copy)(x), net(x)));
}

// The shape behind each child.
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
  const Dataset images = GenerateImages(64);
  DataLoader loader(images, {/*batch_size=*/32}, device());
  std::vector<double> losses;
  while (losses.size() < 60) {
    const std::optional<Batch> batch = loader.Next();
    if (!batch.has_value()) continue;
    GradientTape tape(Parameters(net));
    const Tensor loss = CrossEntropyLoss(net(batch->images), batch->labels);
    sgd.Step(tape.Backward(loss));
    losses.push_back(Item(loss));
  }
  EXPECT_NEAR(Mean(losses, 0, 3), std::log(10), 0.5);
  EXPECT_LT(Mean(losses, 50, 60), 0.8 * Mean(losses, 0, 3));
}

TEST_P(ImageLayersTest, LeNetIsCompiled) {
  ManualSeed(1, device());
  Hybrid net = Hybridize(LeNet(device()));
  const Tensor x = RandomTensor({3, 1, 28, 28}, device());
  const Tensor expected = net.module()(x);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Equal(net(x), expected));
}

}  // namespace
}  // namespace d2l::nn
