// The members of modules, training mode, clones, initial values.

#include "common/nn/module.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/autograd/tape.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Counts the calls in training mode.
class Counter : public Module {
 public:
  explicit Counter(Device device)
      : scale_(Full({2}, 0.5, device)),
        calls_(Zeros({}, device, DType::kInt64)) {}

  Tensor Forward(const Tensor& x) override {
    if (training()) calls_ += 1;
    return training() ? x * scale_ : x;
  }
  std::string Name() const override { return "Counter"; }
  void Members(MemberVisitor& visitor) override {
    visitor.Parameter("scale", scale_);
    visitor.Buffer("calls", calls_);
  }
  std::unique_ptr<Module> New() const override {
    return std::make_unique<Counter>(scale_.device());
  }

 private:
  Tensor scale_;
  Tensor calls_;
};

std::vector<std::string> NamesOf(
    const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

class ModuleTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(ModuleTest);

TEST_P(ModuleTest, BuffersAreNoParameters) {
  Sequential net(Counter(device()), Linear(2, 1, true, device()));
  EXPECT_THAT(NamesOf(NamedParameters(net)),
              ElementsAre("0.scale", "1.weight", "1.bias"));
  EXPECT_THAT(NamesOf(NamedBuffers(net)), ElementsAre("0.calls"));
  EXPECT_THAT(NamesOf(NamedState(net)),
              ElementsAre("0.scale", "0.calls", "1.weight", "1.bias"));
  EXPECT_EQ(NumParameters(net), 5);
  const Device other = OtherDevice(device());
  To(net, other);
  To(net, DType::kFloat64);
  for (const auto& [name, x] : NamedState(net)) {
    EXPECT_EQ(x.device(), other) << name;
    EXPECT_EQ(x.dtype(), name == "0.calls" ? DType::kInt64 : DType::kFloat64);
  }
  EXPECT_EQ(net(Ones({3, 2}, other, DType::kFloat64)).shape(), (Shape{3, 1}));
}

TEST_P(ModuleTest, TrainsAndEvaluatesWithItsChildren) {
  Sequential net{Sequential(Counter(device())), ReLU()};
  Module& inner = static_cast<Sequential&>(net[0])[0];
  EXPECT_TRUE(net.training() && inner.training());
  net.Eval();
  EXPECT_FALSE(net.training() || net[1].training() || inner.training());
  EXPECT_EQ(ValuesOf(net(Ones({2}, device()))), (std::vector<double>{1, 1}));
  net.Train();
  EXPECT_TRUE(net.training() && net[1].training() && inner.training());
  net(Ones({2}, device()));
  EXPECT_EQ(Item(NamedBuffers(net)[0].second), 1);
}

TEST_P(ModuleTest, AHybridsProgramsDependOnTrainingAndBuffers) {
  Hybrid net = Hybridize(Counter(device()));
  const auto calls = [&] { return Item(NamedBuffers(net)[0].second); };
  const Tensor x = Ones({2}, device());
  for (int round = 0; round < 3; ++round) {
    net.Train();
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(ValuesOf(net(x)), (std::vector<double>{0.5, 0.5}));
    }
    EXPECT_EQ(calls(), 3 * (round + 1));
    net.Eval();
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(ValuesOf(net(x)), (std::vector<double>{1, 1}));
    }
    EXPECT_EQ(calls(), 3 * (round + 1));
  }
  EXPECT_EQ(net.Report().programs.size(), 2u);
  EXPECT_THAT(net.Report().programs[1].why,
              HasSubstr("other modules are being trained (Train, Eval)"));
  const std::unique_ptr<Module> copy = Clone(net, device());
  EXPECT_FALSE(copy->training());
  EXPECT_EQ(ValuesOf((*copy)(x)), (std::vector<double>{1, 1}));
  copy->Train();
  EXPECT_EQ(ValuesOf((*copy)(x)), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(Item(NamedBuffers(*copy)[0].second), 10);
  EXPECT_EQ(calls(), 9);
}

TEST_P(ModuleTest, ClonesShareNothing) {
  ManualSeed(5, device());
  Sequential net(Linear(3, 2, false, device()), Counter(device()), Dropout(0.3),
                 Flatten(), ReLU());
  net.AddModule("inner", std::make_unique<Sequential>(Linear(2, 2)));
  To(net, device());
  net[2].Eval();
  ManualSeed(6, device());
  const double next = Item(Rand({}, device()));
  for (const Device to : {device(), OtherDevice(device())}) {
    ManualSeed(6, device());
    const std::unique_ptr<Module> copy = Clone(net, to);
    // Cloning draws no numbers.
    EXPECT_EQ(Item(Rand({}, device())), next);
    EXPECT_EQ(ToString(*copy), ToString(net));
    const auto state = NamedState(net), copied = NamedState(*copy);
    ASSERT_EQ(NamesOf(copied), NamesOf(state));
    for (std::size_t i = 0; i < state.size(); ++i) {
      EXPECT_EQ(copied[i].second.device(), to);
      EXPECT_NE(copied[i].second.storage().get(),
                state[i].second.storage().get());
      EXPECT_EQ(ValuesOf(copied[i].second), ValuesOf(state[i].second));
    }
    auto& children = static_cast<Sequential&>(*copy);
    EXPECT_TRUE(children.training() && children[1].training());
    EXPECT_FALSE(children[2].training());
  }
}

TEST_P(ModuleTest, OnlyWhatSaysHowItIsMadeIsCloned) {
  class Silent : public Module {
    Tensor Forward(const Tensor& x) override { return x; }
    std::string Name() const override { return "Silent"; }
  };
  class Wrong : public Module {
    Tensor Forward(const Tensor& x) override { return x; }
    std::string Name() const override { return "Wrong"; }
    std::unique_ptr<Module> New() const override {
      return std::make_unique<Linear>(1, 1);
    }
  };
  const auto error = [&](const Module& module) -> std::string {
    try {
      Clone(module, device());
      return "nothing thrown";
    } catch (const std::logic_error& thrown) {
      return thrown.what();
    }
  };
  EXPECT_THAT(
      error(Sequential(Silent())),
      HasSubstr("[Clone] Silent does not say how it is made; override New"));
  EXPECT_THAT(error(Wrong()),
              HasSubstr("[Clone] New made another structure:\nLinear("));
}

TEST_P(ModuleTest, AppliesAFunctionToAllChildrenFirst) {
  Sequential net{Sequential(ReLU()), Flatten()};
  std::vector<std::string> names;
  Apply(net, [&](Module& module) { names.push_back(module.Name()); });
  EXPECT_THAT(names,
              ElementsAre("ReLU", "Sequential", "Flatten", "Sequential"));
}

TEST_P(ModuleTest, FirstValues) {
  ManualSeed(1, device());
  Sequential net(Linear(200, 300, true, device()), Counter(device()));
  const Tensor weight = NamedParameters(net)[0].second;
  const auto check = [&](double deviation) {
    double sum = 0, squares = 0, most = 0;
    for (const double w : ValuesOf(weight)) {
      sum += w;
      squares += w * w;
      most = std::max(most, std::fabs(w));
    }
    EXPECT_NEAR(sum / 60000, 0, deviation / 50);
    EXPECT_NEAR(std::sqrt(squares / 60000), deviation, deviation / 50);
    EXPECT_EQ(ValuesOf(NamedParameters(net)[1].second),
              std::vector<double>(300, 0));
    EXPECT_EQ(ValuesOf(NamedParameters(net)[2].second),
              (std::vector<double>{0.5, 0.5}));
    return most;
  };
  InitNormal(net, 0.01);
  EXPECT_GT(check(0.01), 0.03);
  const double bound = std::sqrt(6 / 500.0);
  {
    GradientTape tape(Parameters(net));  // records nothing of it
    InitXavierUniform(net);
    tape.Backward(Sum(net[0](Ones({1, 200}, device()))));
  }
  EXPECT_LE(check(bound / std::sqrt(3)), bound);
  // A convolution's: 6 / (9 * (4 + 2)).
  struct Window : Module {
    Tensor Forward(const Tensor& x) override { return x; }
    std::string Name() const override { return "Window"; }
    void Members(MemberVisitor& visitor) override {
      visitor.Parameter("weight", weight);
    }
    Tensor weight;
  } window;
  window.weight = Ones({4, 2, 3, 3}, device());
  InitXavierUniform(window);
  double most = 0;
  for (const double w : ValuesOf(window.weight)) {
    most = std::max(most, std::fabs(w));
  }
  EXPECT_LE(most, 1 / 3.0);
  EXPECT_GT(most, 0.25);
}

TEST_P(ModuleTest, DropoutDropsAndScales) {
  ManualSeed(1, device());
  Dropout drop(0.3);
  const Tensor x = Full({10000}, 7, device());
  std::vector<double> values = ValuesOf(drop(x));
  const auto dropped = std::count(values.begin(), values.end(), 0);
  EXPECT_NEAR(static_cast<double>(dropped), 3000, 200);
  for (const double value : values) {
    EXPECT_NEAR(value, value == 0 ? 0 : 10, 1e-5);
  }
  EXPECT_NE(ValuesOf(drop(x)), values);  // another mask
  ManualSeed(1, device());
  EXPECT_EQ(ValuesOf(drop(x)), values);
  // Other devices draw different numbers with the same seed; cpu:0 and cuda:0
  // draw the same.
  for (const Device other : AllDevices()) {
    if (other.index() == device().index()) continue;
    ManualSeed(1, other);
    EXPECT_NE(ValuesOf(drop(d2l::To(x, other))), values);
  }
  // The gradient uses the same mask.
  GradientTape tape({x});
  const Tensor y = drop(x);
  EXPECT_EQ(ValuesOf(tape.Backward(Sum(y))[0] * 7), ValuesOf(y));
  drop.Eval();
  EXPECT_EQ(drop(x).id(), x.id());
  EXPECT_EQ(ToString(drop), "Dropout(p=0.3, inplace=False)");
}

TEST_P(ModuleTest, DropoutOfAllAndOfNone) {
  const Tensor x = Ones({3}, device(), DType::kFloat64);
  EXPECT_EQ(ValuesOf(Dropout(1)(x)), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(Dropout(0)(x).id(), x.id());
  EXPECT_EQ(Dropout()(Ones({0, 2}, device())).shape(), (Shape{0, 2}));
  EXPECT_THAT(ThrownText([] { Dropout(1.5); }),
              HasSubstr("[Dropout] p, the probability to drop an element, is "
                        "from 0 to 1; got 1.5"));
  EXPECT_THROW(Dropout(std::nan("")), std::invalid_argument);
  EXPECT_THROW(Dropout()(Tensor()), std::invalid_argument);
}

TEST_P(ModuleTest, Flattens) {
  Flatten flatten;
  EXPECT_EQ(ToString(flatten), "Flatten(start_dim=1, end_dim=-1)");
  const Tensor x = RandomTensor({2, 3, 4}, device());
  EXPECT_EQ(flatten(x).shape(), (Shape{2, 12}));
  EXPECT_EQ(ValuesOf(flatten(x)), ValuesOf(x));
  EXPECT_EQ(flatten(Ones({0, 3, 4}, device())).shape(), (Shape{0, 12}));
  EXPECT_EQ(flatten(Ones({5}, device())).shape(), Shape{5});
  EXPECT_EQ(flatten(Ones({}, device())).shape(), Shape{1});
}

TEST_P(ModuleTest, ASequentialsNamesAreItsOwn) {
  Sequential net;
  net.AddModule("first", std::make_unique<Linear>(2, 2, false));
  net.Append(ReLU());
  EXPECT_EQ(ToString(net),
            "Sequential(\n"
            "  (first): Linear(in_features=2, out_features=2, bias=False)\n"
            "  (1): ReLU()\n)");
  for (const char* name : {"", "a.b", "first", "1"}) {
    EXPECT_THAT(
        ThrownText([&] { net.AddModule(name, std::make_unique<ReLU>()); }),
        HasSubstr("[Sequential] a module cannot be called \"" +
                  std::string(name)));
  }
}

}  // namespace
}  // namespace d2l::nn
