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
  const Tensor sum = Sum(d2l::Checkpoint(function, x));
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
      Ones({3}, device()));
  const GeneratorState before = GetGeneratorState(device());
  EXPECT_THROW(tape.Backward(Sum(y)), std::runtime_error);
  EXPECT_EQ(GetGeneratorState(device()).offset, before.offset);
}

// The gradients of w and of x, with a checkpoint and without one.
void ExpectTheSameGradients(const d2l::CheckpointFunction& function,
                            const Values& watched, const Tensor& x) {
  std::vector<Values> gradients;
  for (const bool checkpoint : {false, true}) {
    GradientTape tape(watched);
    const Tensor y =
        checkpoint ? d2l::Checkpoint(function, x) : function(x, false);
    Tensor loss = Sum(y);
    for (const Tensor& one : watched) loss = loss + Sum(one);
    gradients.push_back(tape.Backward(loss));
  }
  for (std::size_t i = 0; i < watched.size(); ++i) {
    EXPECT_EQ(Bits(gradients[0][i]), Bits(gradients[1][i])) << i;
  }
}

TEST_P(CheckpointTest, ATensorUnderSeveralNamesHasOneGradient) {
  const Tensor w = Arange(2, 6, 1, device());
  const Tensor matrix = Reshape(w, {2, 2});
  const Tensor v = matrix;
  const Tensor x = Ones({1, 2}, device());
  const auto twice = [=](const Tensor& x, bool) {
    return MatMul(MatMul(x, matrix), v);
  };
  ExpectTheSameGradients(twice, {matrix}, x);
  // x is a parameter too, alone, by a view, and as the result.
  ExpectTheSameGradients([w](const Tensor& x, bool) { return x * w; }, {w}, w);
  ExpectTheSameGradients(
      [w](const Tensor& x, bool) { return x * Slice(w, 0, 1, 3); }, {w},
      Slice(w, 0, 0, 2));
  ExpectTheSameGradients([](const Tensor& x, bool) { return x; }, {w}, w);
  // Both names in a module.
  struct Tied : Module {
    Tensor Forward(const Tensor& x) override { return MatMul(MatMul(x, w), v); }
    std::string Name() const override { return "Tied"; }
    void Members(MemberVisitor& visitor) override {
      visitor.Parameter("w", w);
      visitor.Parameter("v", v);
    }
    Tensor w, v;
  };
  auto tied = std::make_unique<Tied>();
  tied->w = tied->v = matrix;
  Checkpoint net(std::move(tied));
  GradientTape tape({matrix});
  EXPECT_EQ(ToVector<float>(tape.Backward(Sum(net(x)))[0]),
            (std::vector<float>{11, 15, 13, 17}));
}

TEST_P(CheckpointTest, FindsWhatTheFunctionReads) {
  const Tensor w = Randn({3}, device());
  const Tensor u = Randn({3}, device());
  const Tensor data = Randn({3}, device());
  const Tensor before = w * u;  // a constant to the tapes below
  ExpectTheSameGradients(
      [=](const Tensor& x, bool) {
        return Tanh(x * w + data) * u + Detach(u) * before;
      },
      {w, u}, Randn({2, 3}, device()));
  // A value that depends on a watched tensor, and is not one.
  GradientTape tape({w});
  const Tensor square = w * w;
  const Tensor y =
      d2l::Checkpoint([square](const Tensor& x, bool) { return x * square; },
                      Full({3}, 5, device()));
  EXPECT_EQ(Bits(tape.Backward(Sum(y))[0]), Bits(w * 5 + w * 5));
}

TEST_P(CheckpointTest, APartThatDependsOnNothingWatchedIsAConstant) {
  const Tensor w = Randn({3}, device());
  const Tensor x = Randn({3}, device());
  ExpectTheSameGradients([](const Tensor& x, bool) { return Tanh(x); }, {w}, x);
  ExpectTheSameGradients([w](const Tensor& x, bool) { return x * Detach(w); },
                         {w}, x);
}

TEST_P(CheckpointTest, RefusesValuesThatWereOverwritten) {
  const Tensor w = Full({2}, 3, device());
  const Tensor captured = Full({2}, 2, device());
  const Tensor x = Ones({2}, device());
  for (const Tensor& overwritten : {w, captured, x}) {
    GradientTape tape({w});
    const Tensor y = d2l::Checkpoint(
        [=](const Tensor& x, bool) { return x * w * w * captured; }, x);
    {
      const NoGradGuard guard;
      CopyTo(overwritten * 10, overwritten);
    }
    std::string thrown;
    try {
      tape.Backward(Sum(y));
    } catch (const std::logic_error& error) {
      thrown = error.what();
    }
    EXPECT_THAT(thrown, testing::HasSubstr("was overwritten in place since"));
  }
}

TEST_P(CheckpointTest, RefusesAFunctionThatWritesToItsInput) {
  const Tensor w = Full({2}, 3, device());
  for (const bool by_view : {false, true}) {
    GradientTape tape({w});
    const auto function = [=](const Tensor& x, bool) {
      CopyTo(w * 2, by_view ? Reshape(x, {2}) : x);
      return x * w;
    };
    EXPECT_THAT(
        ThrownText([&] { d2l::Checkpoint(function, Ones({2}, device())); }),
        testing::HasSubstr("writes to its input"));
  }
}

// The mode of the first pass counts, as that of a part of the module does.
TEST_P(CheckpointTest, TheSecondPassHasTheModesOfTheFirst) {
  ManualSeed(3, device());
  const Tensor x = Randn({4, 2, 5, 5}, device());
  for (const bool whole : {false, true}) {
    std::vector<std::vector<std::string>> all;
    std::unique_ptr<Module> first = std::make_unique<Sequential>(Part(2));
    for (const bool checkpoint : {false, true}) {
      std::unique_ptr<Module> net = Clone(*first, device());
      if (checkpoint) net = std::make_unique<Checkpoint>(std::move(net));
      ManualSeed(5, device());
      const auto freeze = [whole](Module& part) {
        if (whole || part.Name() == "BatchNorm2d") part.Eval();
      };
      Apply(*net, freeze);
      GradientTape tape(Parameters(*net));
      const Tensor y = (*net)(x);
      net->Train();
      std::vector<std::string> bits;
      for (const Tensor& gradient : tape.Backward(Sum(Square(y)))) {
        bits.push_back(Bits(gradient));
      }
      EXPECT_TRUE(net->training());
      all.push_back(bits);
    }
    EXPECT_EQ(all[0], all[1]) << whole;
  }
}

// A mask that is drawn on the host's device, for example.
TEST_P(CheckpointTest, RepeatsTheRandomNumbersOfAllDevices) {
  const Tensor w = Randn({64}, device());
  for (const DeviceInfo& info : Devices()) {
    const auto function = [&](const Tensor& x, bool) {
      return x * w * To(Rand({64}, info.device), device());
    };
    ManualSeed(11);
    GradientTape tape({w});
    const Tensor x = Full({64}, 1, device());
    const Tensor y = d2l::Checkpoint(function, x);
    const Tensor next = Rand({3}, info.device);
    const Tensor gradient = tape.Backward(Sum(y))[0];
    EXPECT_EQ(Bits(gradient * w), Bits(y)) << info.Describe();
    const Tensor after = Rand({3}, info.device);
    ManualSeed(11);
    Rand({64}, info.device);
    EXPECT_EQ(Bits(next), Bits(Rand({3}, info.device)));
    EXPECT_EQ(Bits(after), Bits(Rand({3}, info.device)));
  }
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
