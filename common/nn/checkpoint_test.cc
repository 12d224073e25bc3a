#include "common/nn/checkpoint.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/autograd/checkpoint.h"
#include "common/autograd/tape.h"
#include "common/device/device_table.h"
#include "common/graph/ir_testing.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::nn {
namespace {

using ir::Bits;
using Values = std::vector<Tensor>;

class CheckpointTest : public DeviceTest {
 protected:
  Sequential Part(std::int64_t channels) const {
    return Sequential(Conv2d(channels, 4, 3, {1, 1}, true, device()),
                      BatchNorm2d(4, 1e-5, 0.1, device()), ReLU(),
                      Dropout(0.4));
  }
  Sequential Net(bool checkpoints) const {
    Sequential net;
    for (const std::int64_t channels : {2, 4, 4}) {
      if (checkpoints) {
        net.Append(Checkpoint(Part(channels)));
      } else {
        net.Append(Part(channels));
      }
    }
    net.Append(Flatten());
    net.Append(Linear(4 * 25, 3, device()));
    return net;
  }
};
INSTANTIATE_FOR_ALL_DEVICES(CheckpointTest);

// Includes dropout's random numbers and running statistics.
TEST_P(CheckpointTest, TrainsWithTheSameBits) {
  ManualSeed(3, device());
  Sequential plain = Net(false), checked = Net(true);
  const Values from = Parameters(plain), to = Parameters(checked);
  for (std::size_t i = 0; i < from.size(); ++i) CopyTo(from[i], to[i]);
  const Tensor x = Randn({5, 2, 5, 5}, device());
  const Tensor labels = RandInt(0, 3, {5}, device());
  std::vector<std::vector<std::string>> all;
  for (Sequential* net : {&plain, &checked}) {
    ManualSeed(4, device());
    std::vector<std::string> bits;
    SGD sgd(Parameters(*net), {0.1, 0.9});
    for (int step = 0; step < 3; ++step) {
      GradientTape tape(Parameters(*net));
      const Tensor loss = CrossEntropyLoss((*net)(x), labels);
      sgd.Step(tape.Backward(loss));
      bits.push_back(Bits(loss));
      bits.push_back(Bits(Rand({3}, device())));  // the next numbers
    }
    for (const auto& [name, value] : NamedState(*net)) {
      bits.push_back(Bits(To(value, DType::kFloat32)));
    }
    all.push_back(bits);
  }
  EXPECT_EQ(all[0], all[1]);
}

// Includes the gradient of the input, and an input that needs none.
TEST_P(CheckpointTest, GivesTheGradientsOfTheInputAndOfManyParameters) {
  Values parameters;
  for (int i = 0; i < 40; ++i) {
    parameters.push_back(Randn({3}, device()));
  }
  const auto function = [&](const Tensor& x, bool) {
    Tensor y = x;
    for (const Tensor& p : parameters) y = Tanh(y * p);
    return y;
  };
  const Tensor x = Randn({2, 3}, device());
  Values watched = parameters;
  watched.push_back(x);
  GradientTape outer(watched);
  GradientTape whole(watched);
  const Values expected = whole.Backward(Sum(function(x, false)));
  GradientTape again(watched);
  const Tensor sum = Sum(d2l::Checkpoint(function, x, parameters));
  Values got;
  {
    const NoGradGuard guard;  // The gradients are constants to other tapes.
    got = again.Backward(sum);
  }
  EXPECT_THAT(ThrownText([&] { outer.Backward(Sum(got[0])); }),
              testing::HasSubstr("does not depend"));
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(Bits(got[i]), Bits(expected[i])) << i;
  }
}

// Checks the memory between the passes, and how often a part is computed.
TEST_P(CheckpointTest, KeepsTheInputsOfItsPartsOnly) {
  const Tensor x = Randn({64, 2, 5, 5}, device());
  std::vector<std::int64_t> kept;
  for (const bool checkpoints : {false, true}) {
    Sequential net = Net(checkpoints);
    GradientTape tape(Parameters(net));
    const std::int64_t before = Memory(device()).Stats().allocated;
    const Tensor y = net(x);
    kept.push_back(Memory(device()).Stats().allocated - before);
  }
  // A part keeps the convolution's output, the normalised one, the sign, the
  // mask of dropout, the product; the wrapped one keeps its output.
  const std::int64_t one = 64 * 4 * 25 * 4;
  EXPECT_GT(kept[0], 3 * 4 * one);
  EXPECT_LT(kept[1], 3 * one * 5 / 4);
}

TEST_P(CheckpointTest, WithoutATapeItIsTheModule) {
  Checkpoint net(Part(2));
  EXPECT_EQ(ToString(net), ToString(Part(2)));
  net.Eval();
  struct Counter : OpListener {
    void OnOp(const OpRecord& record) override {
      names.emplace_back(record.primitive->name());
    }
    std::vector<std::string> names;
  } counter;
  const ScopedOpListener listen(&counter);
  net(Randn({1, 2, 5, 5}, device()));
  EXPECT_THAT(counter.names, testing::Not(testing::Contains("checkpoint")));
  const std::unique_ptr<Module> clone = Clone(net, device());
  EXPECT_FALSE(clone->training());
  EXPECT_EQ(NamedState(*clone).size(), NamedState(net).size());
}

// The random numbers go on as if Backward had not been called.
TEST_P(CheckpointTest, AnErrorOfTheSecondTimeChangesNothingElse) {
  const Tensor w = Randn({3}, device());
  GradientTape tape({w});
  const Tensor y = d2l::Checkpoint(
      [&](const Tensor& x, bool again) {
        const Tensor noise = Rand({3}, device());
        if (again) throw std::runtime_error("again");
        return x * w + noise;
      },
      Ones({3}, device()), {w});
  const GeneratorState before = GetGeneratorState(device());
  EXPECT_THROW(tape.Backward(Sum(y)), std::runtime_error);
  EXPECT_EQ(GetGeneratorState(device()).offset, before.offset);
}

// The error is the part's, at the user's line.
TEST_P(CheckpointTest, ThrowsWhatTheModuleThrows) {
  Checkpoint net(Linear(3, 2, device()));
  GradientTape tape(Parameters(net));
  EXPECT_THAT(ThrownText([&] {
                net(Ones({2, 4}, device()));
              }),
              testing::HasSubstr("[Linear]"));
}

}  // namespace
}  // namespace d2l::nn
