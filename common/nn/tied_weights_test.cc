// Tied weights: one tensor under two names. Compares trainings with PyTorch's:
// tied_golden.json, made by tests/make_tied_golden.py.

#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/autograd/tape.h"
#include "common/nn/checkpoint.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/nn/state_dict.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace d2l::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kFeatures = 4;
constexpr std::int64_t kSamples = 12;

const nlohmann::json& Golden() {
  static const auto& golden = *new nlohmann::json([] {
    std::ifstream file("common/nn/tied_golden.json");
    EXPECT_TRUE(file) << "tied_golden.json is not among the test's data";
    return nlohmann::json::parse(file);
  }());
  return golden;
}

Tensor Sines(std::int64_t begin, const Shape& shape, Device device) {
  std::vector<double> values(shape.numel());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<double>(begin + static_cast<int>(i)));
  }
  return FromVector(values, shape, device);
}

void Tie(Module& net) {
  auto& layers = static_cast<Sequential&>(net);
  static_cast<Linear&>(layers[2]).weight() =
      static_cast<Linear&>(layers[0]).weight();
}

// With the initial values of the golden training.
std::unique_ptr<Sequential> TiedNet(Device device) {
  auto net = std::make_unique<Sequential>(
      Linear(kFeatures, kFeatures, true, device), ReLU(),
      Linear(kFeatures, kFeatures, true, device));
  To(*net, DType::kFloat64);
  Tie(*net);
  const std::map<std::string, int> begins = {
      {"0.weight", 1}, {"0.bias", 100}, {"2.bias", 200}};
  for (const auto& [name, parameter] : NamedParameters(*net)) {
    CopyTo(Sines(begins.at(name), parameter.shape(), device), parameter);
  }
  return net;
}

void ExpectTied(const Module& net) {
  const auto state = StateDict(net);
  EXPECT_EQ(state.at("0.weight").id(), state.at("2.weight").id());
}

// Trains as PyTorch did, and compares.
void ExpectPyTorchsTraining(Module& net, const Module& parts, Device device) {
  const std::vector<Tensor> parameters = Parameters(net);
  ASSERT_EQ(parameters.size(), 3u);
  SGD sgd(parameters, {/*lr=*/0.1, /*momentum=*/0.9});
  int step = 0;
  for (const nlohmann::json& expected : Golden().at("losses")) {
    ++step;
    const Tensor x = Sines(1000 * step, {kSamples, kFeatures}, device);
    GradientTape tape(parameters);
    const Tensor loss = Mean(Square(net(x) - x));
    sgd.Step(tape.Backward(loss));
    EXPECT_NEAR(Item(loss), expected.get<double>(), 1e-12) << step;
  }
  EXPECT_EQ(step, 20);
  const auto state = StateDict(parts);
  EXPECT_EQ(state.size(), Golden().at("state").size());
  for (const auto& [name, expected] : Golden().at("state").items()) {
    const std::vector<double> got = ValuesOf(state.at(name));
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i].get<double>(), 1e-12) << name << " " << i;
    }
  }
}
void ExpectPyTorchsTraining(Module& net, Device device) {
  ExpectPyTorchsTraining(net, net, device);
  ExpectTied(net);
}

class TiedWeightsTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(TiedWeightsTest);

TEST_P(TiedWeightsTest, AreOneParameterUnderItsFirstName) {
  const auto net = TiedNet(device());
  std::vector<std::string> names;
  for (const auto& [name, x] : NamedParameters(*net)) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("0.weight", "0.bias", "2.bias"));
  EXPECT_EQ(NumParameters(*net), kFeatures * kFeatures + 2 * kFeatures);
  std::vector<std::string> state;
  for (const auto& [name, x] : NamedState(*net)) state.push_back(name);
  EXPECT_THAT(state, ElementsAre("0.weight", "0.bias", "2.weight", "2.bias"));
  ExpectTied(*net);
}

TEST_P(TiedWeightsTest, TrainAsInPyTorch) {
  ExpectPyTorchsTraining(*TiedNet(device()), device());
}

TEST_P(TiedWeightsTest, StayTiedInAClone) {
  const auto first = TiedNet(device());
  const std::unique_ptr<Module> clone = Clone(*first, device());
  ExpectPyTorchsTraining(*clone, device());
  const Device other = OtherDevice(device());
  ExpectPyTorchsTraining(*Clone(*first, other), other);
}

TEST_P(TiedWeightsTest, StayTiedOnAnotherDeviceAndInAnotherDType) {
  const auto net = TiedNet(device());
  const Device other = OtherDevice(device());
  To(*net, other);
  ExpectTied(*net);
  To(*net, device());
  ExpectPyTorchsTraining(*net, device());
  To(*net, DType::kFloat32);
  ExpectTied(*net);
}

TEST_P(TiedWeightsTest, TrainUnderCheckpoint) {
  auto net = TiedNet(device());
  Sequential& parts = *net;
  Checkpoint whole(std::move(net));
  ExpectPyTorchsTraining(whole, parts, device());
  ExpectTied(whole);
}

TEST_P(TiedWeightsTest, TrainHybridized) {
  Hybrid hybrid(TiedNet(device()), HybridOptions());
  ExpectPyTorchsTraining(hybrid, device());
}

TEST_P(TiedWeightsTest, AreSavedUnderBothNamesAndLoaded) {
  const std::string path = testing::TempDir() + "/tied.safetensors";
  ASSERT_TRUE(SaveStateDict(*TiedNet(device()), path).ok());
  const auto file = safetensors::LoadFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tensors.size(), 4u);
  for (const bool from_file : {false, true}) {
    const auto net = TiedNet(device());
    InitNormal(*net, 1);
    ASSERT_TRUE((from_file ? LoadStateDict(*net, path)
                           : LoadStateDict(*net, file->tensors))
                    .ok());
    ExpectPyTorchsTraining(*net, device());
  }
}

TEST_P(TiedWeightsTest, ViewsOfOneAnotherAreRefused) {
  const auto net = TiedNet(device());
  auto& last = static_cast<Linear&>((*net)[2]);
  last.weight() = Transpose(last.weight(), 0, 1);
  EXPECT_THAT(ThrownText([&] { Parameters(*net); }),
              HasSubstr("0.weight and 2.weight share memory"));
  last.weight() = Clone(last.weight());
  EXPECT_EQ(Parameters(*net).size(), 4u);
  // Parts of one tensor that do not overlap are two parameters.
  const Tensor both = Sines(1, {2, kFeatures, kFeatures}, device());
  static_cast<Linear&>((*net)[0]).weight() = Slice(both, 0, 0, 1);
  last.weight() = Slice(both, 0, 1, 2);
  EXPECT_EQ(Parameters(*net).size(), 4u);
}

TEST_P(TiedWeightsTest, SgdRefusesATensorThatIsGivenTwice) {
  const Tensor w = Ones({2}, device()), b = Ones({2}, device());
  EXPECT_THAT(ThrownText([&] {
                SGD({w, b, w}, {0.1});
              }),
              HasSubstr("[SGD] parameter 2 is the same tensor as parameter 0"));
}

}  // namespace
}  // namespace d2l::nn
