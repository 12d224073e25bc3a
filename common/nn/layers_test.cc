#include "common/nn/layers.h"

#include <cmath>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device_table.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Names(const Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : NamedParameters(module)) {
    names.push_back(name);
  }
  return names;
}

// A module with its own name, a parameter and children.
class Block : public Module {
 public:
  explicit Block(std::int64_t n) : body_(Linear(n, n, false), ReLU()) {}

  Tensor Forward(const Tensor& x) override { return body_(x) * scale_ + x; }
  std::string Name() const override { return "Block"; }
  std::string ExtraRepr() const override { return "residual=True"; }
  void Members(MemberVisitor& visitor) override {
    visitor.Parameter("scale", scale_);
    visitor.Child("body", body_);
  }

 private:
  Tensor scale_ = Full({1}, 0.5);
  Sequential body_;
};

// The text that PyTorch 2.15.0 prints for the same modules.
TEST(ModulesTest, PrintsAsPyTorch) {
  EXPECT_EQ(ToString(Linear(512, 256)),
            "Linear(in_features=512, out_features=256, bias=True)");
  EXPECT_EQ(ToString(ReLU()), "ReLU()");
  EXPECT_EQ(ToString(Sequential()), "Sequential()");
  std::ostringstream out;
  out << Sequential(Linear(4, 3), ReLU(), Block(3),
                    Sequential(Linear(3, 1, false), Sequential()));
  EXPECT_EQ(out.str(), R"(Sequential(
  (0): Linear(in_features=4, out_features=3, bias=True)
  (1): ReLU()
  (2): Block(
    residual=True
    (body): Sequential(
      (0): Linear(in_features=3, out_features=3, bias=False)
      (1): ReLU()
    )
  )
  (3): Sequential(
    (0): Linear(in_features=3, out_features=1, bias=False)
    (1): Sequential()
  )
))");
}

TEST(ModulesTest, NamesItsParameters) {
  Sequential net(Linear(4, 3), ReLU(), Block(3), Linear(3, 2, false));
  EXPECT_THAT(Names(net), ElementsAre("0.weight", "0.bias", "2.scale",
                                      "2.body.0.weight", "3.weight"));
  EXPECT_EQ(NumParameters(net), 4 * 3 + 3 + 1 + 9 + 6);
  EXPECT_THAT(Names(ReLU()), IsEmpty());
  EXPECT_EQ(NumParameters(Sequential()), 0);
  // They are handles to the same memory.
  auto& linear = static_cast<Linear&>(net[0]);
  Tensor bias = NamedParameters(net)[1].second;
  bias *= 0;
  EXPECT_EQ(ValuesOf(linear.bias()), std::vector<double>(3, 0));
}

// Deeper ones would overflow the stack, at the latest where they are destroyed.
TEST(ModulesTest, ModulesWithinModulesHaveABound) {
  Sequential net(Linear(2, 2));
  int depth = 2;
  try {
    for (; depth <= 50'000; ++depth) {
      Sequential around;
      around.Append(std::move(net));
      net = std::move(around);
    }
    FAIL() << "no bound";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("1001 deep; 1000 is the most"));
  }
  EXPECT_EQ(depth, Sequential::kMaxDepth);

  net = Sequential(ReLU());
  for (depth = 2; depth < Sequential::kMaxDepth; ++depth) {
    Sequential around;
    around.Append(std::move(net));
    net = std::move(around);
  }
  EXPECT_EQ(ValuesOf(net(Full({1}, -1))), std::vector<double>{0});
  net.Eval();
  EXPECT_THAT(NamedParameters(*Clone(net, Device())), IsEmpty());
  EXPECT_THAT(ToString(net), HasSubstr("(0): ReLU()"));
}

TEST(ModulesTest, Moves) {
  Sequential net;
  net.Append(Sequential(Linear(2, 2)));
  net.Append(ReLU());
  Tensor x = Ones({1, 2});
  const std::vector<double> y = ValuesOf(net(x));
  Sequential moved = std::move(net);
  EXPECT_EQ(ValuesOf(moved(x)), y);
  EXPECT_EQ(moved.size(), 2);
  EXPECT_EQ(moved[1].Name(), "ReLU");
}

TEST(ModulesTest, AListOfNoneIsTheIdentity) {
  const Tensor x = Ones({2});
  EXPECT_EQ(Sequential()(x).storage().get(), x.storage().get());
}

class LayersTest : public DeviceTest {};

TEST_P(LayersTest, LinearAgainstTheLoop) {
  for (const auto& [in, out] : {std::pair{1, 1}, {3, 5}, {17, 2}, {0, 3}}) {
    for (const bool with_bias : {true, false}) {
      Linear layer(in, out, with_bias, device());
      layer.weight() = RandomTensor({out, in}, device());
      if (with_bias) layer.bias() = RandomTensor({out}, device());
      const std::vector<double> w = ValuesOf(layer.weight());
      const std::vector<double> b =
          with_bias ? ValuesOf(layer.bias()) : std::vector<double>(out, 0);
      for (const Shape& batch :
           {Shape{}, {0}, {1}, {7}, {2, 3}, {3, 0}, {33}}) {
        Shape shape = batch, out_shape = batch;
        shape.push_back(in);
        out_shape.push_back(out);
        const Tensor x =
            RandomTensor(shape, device(), DType::kFloat32,
                         batch.rank() == 1 ? Placement::kTransposed
                                           : Placement::kContiguous);
        const std::vector<double> values = ValuesOf(x);
        std::vector<double> expected, errors;
        for (int row = 0; row < batch.numel(); ++row) {
          for (int i = 0; i < out; ++i) {
            double sum = b[i], size = std::fabs(b[i]);
            for (int k = 0; k < in; ++k) {
              sum += values[row * in + k] * w[i * in + k];
              size += std::fabs(values[row * in + k] * w[i * in + k]);
            }
            expected.push_back(sum);
            errors.push_back((in + 2) * Epsilon(DType::kFloat32) * size);
          }
        }
        EXPECT_TRUE(
            IsNear(layer(x), out_shape, DType::kFloat32, expected, errors))
            << ToString(layer) << " of " << shape;
      }
    }
  }
}

TEST_P(LayersTest, ParametersAreUniform) {
  ManualSeed(1, device());
  Linear layer(25, 400, device());
  EXPECT_EQ(layer.weight().shape(), (Shape{400, 25}));
  EXPECT_EQ(layer.bias().shape(), (Shape{400}));
  EXPECT_EQ(layer.weight().device(), device());
  for (const Tensor& x : {layer.weight(), layer.bias()}) {
    double low = 0, high = 0, sum = 0, squares = 0;
    for (const double value : ValuesOf(x)) {
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(x.numel());
    // ±1/sqrt(25), with the mean 0 and the variance 0.2²/3.
    EXPECT_GE(low, -0.2);
    EXPECT_LE(high, 0.2);
    EXPECT_LT(low, -0.195);
    EXPECT_GT(high, 0.195);
    EXPECT_NEAR(sum / count, 0, 0.02);
    EXPECT_NEAR(squares / count, 0.04 / 3, 0.002);
  }
  // A seed gives its numbers again, and the next draw others.
  const std::vector<double> first = ValuesOf(layer.weight());
  EXPECT_NE(ValuesOf(Linear(25, 400, true, device()).weight()), first);
  ManualSeed(1, device());
  EXPECT_EQ(ValuesOf(Linear(25, 400, true, device()).weight()), first);
}

TEST_P(LayersTest, MovesToADevice) {
  const Device other = OtherDevice(device());
  Sequential net(Linear(3, 4, true, device()), ReLU(),
                 Linear(4, 2, true, device()));
  const Tensor x = RandomTensor({5, 3}, device());
  const std::vector<double> y = ValuesOf(net(x));
  To(net, other);
  for (const auto& [name, parameter] : NamedParameters(net)) {
    EXPECT_EQ(parameter.device(), other) << name;
  }
  const Tensor there = net(d2l::To(x, other));
  EXPECT_EQ(there.device(), other);
  // Devices of other types round differently.
  EXPECT_TRUE(IsNear(there, {5, 2}, DType::kFloat32, y,
                     std::vector<double>(y.size(), 1e-4)));
}

TEST_P(LayersTest, RefusesWhatItDoesNotTake) {
  Sequential net(Linear(4, 3, true, device()));
  const std::string takes =
      "[Linear] Linear(in_features=4, out_features=3, bias=True) takes a "
      "float32 tensor of shape (*, 4) on " +
      device().ToString() + ", its weight's dtype and device; got ";
  const std::string instead =
      "; convert and move with To, change the shape with Reshape";
  const Tensor wrong = Ones({2, 5}, device());
  EXPECT_REFUSED(takes + wrong.Describe() + instead, net(wrong));
  const Tensor scalar = Ones({}, device());
  EXPECT_REFUSED(takes + scalar.Describe() + instead, net(scalar));
  const Tensor integers = Ones({2, 4}, device(), DType::kInt64);
  EXPECT_REFUSED(takes + integers.Describe() + instead, net(integers));
  EXPECT_REFUSED(takes + "an undefined tensor" + instead, net(Tensor()));
  const Tensor there = Ones({2, 4}, OtherDevice(device()));
  EXPECT_REFUSED(takes + there.Describe() + instead, net(there));
  EXPECT_THAT([&] { net.Forward(wrong); },  // no call that names its line
              testing::ThrowsMessage<std::invalid_argument>(
                  testing::HasSubstr("requested at common/nn/layers.cc:")));
  EXPECT_THROW(Linear(-1, 2, true, device()), std::invalid_argument);
  EXPECT_THROW(Linear(2, -1, true, device()), std::invalid_argument);
}

INSTANTIATE_FOR_ALL_DEVICES(LayersTest);

// Profiles and late errors name the line that called the network.
TEST(ModulesTest, OperationsNameTheCaller) {
  struct Lines : OpListener {
    void OnOp(const OpRecord& record) override {
      lines.push_back(record.requested_by.line());
    }
    std::vector<int> lines;
  } listener;
  Sequential net(Linear(2, 2), Sequential(ReLU()));
  const Tensor x = Ones({1, 2});
  const ScopedOpListener listen(&listener);
  const int line = __LINE__ + 1;
  net(x);
  EXPECT_THAT(listener.lines, ElementsAre(line, line, line, line));
}

}  // namespace
}  // namespace d2l::nn
