// Steps of training as captured programs: on a GPU, or on a model of one, as a
// CUDA graph.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/autograd/tape.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/graph/captured.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/nn/layers.h"
#include "common/nn/sgd.h"
#include "common/ops/nn/functional.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::nn {
namespace {

using ir::Bits;
using Values = std::vector<Tensor>;

class CapturedStepTest : public DeviceTest {
 protected:
  static constexpr std::int64_t kBatch = 3;

  CapturedStepTest() { ManualSeed(5, device()); }

  // The book's LeNet.
  Values Parameters() const {
    Values parameters;
    for (const Shape& shape :
         {Shape{20, 1, 3, 3}, Shape{20}, Shape{50, 20, 5, 5}, Shape{50},
          Shape{800, 128}, Shape{128}, Shape{128, 10}, Shape{10}}) {
      parameters.push_back(Randn(shape, device()) * 0.1);
    }
    return parameters;
  }
  static Tensor Forward(const Tensor& x, const Values& p) {
    const Tensor h1 = d2l::AvgPool2d(Relu(d2l::Conv2d(x, p[0], p[1])), 2);
    const Tensor h2 = d2l::MaxPool2d(Relu(d2l::Conv2d(h1, p[2], p[3])), 2);
    const Tensor h3 = Relu(MatMul(Reshape(h2, {kBatch, 800}), p[4]) + p[5]);
    return MatMul(h3, p[6]) + p[7];
  }
  Tensor Images() const { return Randn({kBatch, 1, 28, 28}, device()); }

  static ir::Graph Compiled(const ir::TensorFunction& fn,
                            const Values& inputs) {
    ir::Graph graph = ir::Trace(fn, inputs);
    ir::Optimize(graph);
    return graph;
  }
};
INSTANTIATE_FOR_ALL_DEVICES(CapturedStepTest);

// Makes calls that run the interpreter, capture, and launch again.
TEST_P(CapturedStepTest, GradientsOfLeNet) {
  const Values parameters = Parameters();
  const auto fn = [&](const Values& in) -> Values {
    GradientTape tape(parameters);
    const Tensor loss = -Sum(in[1] * LogSoftmax(Forward(in[0], parameters), 1));
    Values results = tape.Backward(loss);
    results.push_back(loss);
    return results;
  };
  const auto inputs = [this]() -> Values {
    return {Images(), Softmax(Randn({kBatch, 10}, device()), 1)};
  };
  ir::Captured captured(Compiled(fn, inputs()));
  for (int call = 0; call < 4; ++call) {
    const Values in = inputs();
    EXPECT_EQ(Bits(captured.Run(in)), Bits(fn(in))) << "call " << call;
  }
  EXPECT_EQ(captured.not_captured(), "");
}

// The step writes the parameters in place.
TEST_P(CapturedStepTest, StepsOfLeNet) {
  const Tensor labels = FromVector<std::int64_t>({3, 0, 9}, {kBatch}, device());
  const auto steps = [&](bool compiled) {
    ManualSeed(5, device());
    Values parameters = Parameters();
    const auto fn = [&](const Values& in) -> Values {
      GradientTape tape(parameters);
      const Tensor loss = CrossEntropyLoss(Forward(in[0], parameters), in[1]);
      SGD(parameters, {0.1}).Step(tape.Backward(loss));
      return {loss};
    };
    // Tracing also runs the function.
    ir::Captured captured(Compiled(fn, {Images(), labels}));
    EXPECT_EQ(captured.not_captured(), "");
    std::vector<std::vector<std::string>> results;
    for (int call = 0; call < 4; ++call) {
      const Values in = {Images(), labels};
      results.push_back(Bits(compiled ? captured.Run(in) : fn(in)));
    }
    results.push_back(Bits(parameters));
    return results;
  };
  EXPECT_EQ(steps(true), steps(false));
}

TEST_P(CapturedStepTest, AWrongLabelNamesItsLine) {
  Values parameters = {Randn({4, 10}, device()), Zeros({10}, device())};
  int line = 0;
  const auto fn = [&](const Values& in) -> Values {
    GradientTape tape(parameters);
    const Tensor logits = MatMul(in[0], parameters[0]) + parameters[1];
    line = __LINE__ + 1;
    const Tensor loss = CrossEntropyLoss(logits, in[1]);
    SGD(parameters, {0.1}).Step(tape.Backward(loss));
    return {loss};
  };
  const auto inputs = [this](std::int64_t label) -> Values {
    return {Randn({kBatch, 4}, device()),
            FromVector<std::int64_t>({3, label, 9}, {kBatch}, device())};
  };
  ir::Captured captured(Compiled(fn, inputs(0)));
  for (int call = 0; call < 3; ++call) Item(captured.Run(inputs(call))[0]);
  const Tensor kept = Clone(parameters[1]);
  const Tensor loss = captured.Run(inputs(10))[0];
  for (const Tensor& x : {loss, parameters[0], parameters[1]}) {
    try {
      ToVector<float>(x);
      ADD_FAILURE() << "nothing thrown";
    } catch (const AsyncError& error) {
      EXPECT_EQ(error.failure().operation, "cross_entropy");
      EXPECT_EQ(error.failure().requested_by.line(), line);
      EXPECT_THAT(error.what(), testing::HasSubstr("label 10 of sample 1"));
    }
  }
  EXPECT_EQ(ToVector<float>(kept).size(), 10u);
}

// A program of operations that check, in calls on two streams: each failure is
// the one of the same call without the program.
TEST_P(CapturedStepTest, FailuresAreThoseOfTheOperations) {
  const Values parameters = {Randn({6, 4}, device()), Randn({4, 10}, device())};
  const auto fn = [&](const Values& in) -> Values {
    GradientTape tape(parameters);
    const Tensor embedded = IndexSelect(parameters[0], 0, in[0]);
    const Tensor logits = MatMul(embedded, parameters[1]);
    const Tensor picked = Sum(Gather(logits, 1, in[1]));
    Values results =
        tape.Backward(CrossEntropyLoss(logits, in[2]) + picked * 0.1);
    results.push_back(FloorDivide(in[2], in[0] + 1));
    return results;
  };
  const auto ints = [this](const std::vector<std::int64_t>& values,
                           const Shape& shape) {
    return FromVector(values, shape, device());
  };
  const auto inputs = [&](std::int64_t token, std::int64_t pick,
                          std::int64_t label) -> Values {
    return {ints({0, 5, token}, {kBatch}), ints({pick, 9, 1}, {kBatch, 1}),
            ints({1, label, 2}, {kBatch})};
  };
  const std::vector<Values> calls = {
      inputs(3, 2, 4), inputs(6, 2, 4),  inputs(3, 2, 4),
      inputs(3, 2, 4), inputs(3, 10, 4), inputs(3, 2, 10),
      inputs(3, 2, 4), inputs(-1, 2, 4), inputs(-1, -1, -1)};
  // "" if none of the tensors is invalid.
  const auto failure = [](const Values& results) {
    std::string text;
    for (const Tensor& x : results) {
      try {
        Bits(x);
      } catch (const AsyncError& error) {
        const Failure& f = error.failure();
        text = f.operation + " at " + f.requested_at.ToString() + " by " +
               f.requested_by.ToString() + " of " + f.inputs + ": " + f.what;
      }
    }
    return text;
  };
  std::vector<std::string> expected;
  std::set<std::string> operations;
  for (const Values& in : calls) {
    expected.push_back(failure(fn(in)));
    operations.insert(expected.back().substr(0, expected.back().find(' ')));
  }
  EXPECT_THAT(operations, testing::ElementsAre("", "cross_entropy", "gather",
                                               "index_select"));
  ir::Captured captured(Compiled(fn, calls[0]));
  Stream* const streams[] = {&DefaultStream(device()), &NewStream(device())};
  for (Stream* const stream : streams) {
    const StreamGuard guard(*stream);
    for (int i = 0; i < 2; ++i) Bits(captured.Run(calls[0]));
  }
  EXPECT_EQ(captured.not_captured(), "");
  for (std::size_t i = 0; i < 3 * calls.size(); ++i) {
    // The other stream makes another of the calls at the same time.
    std::vector<Values> results, behind;
    const std::size_t which[] = {i % calls.size(), 2 * i % calls.size()};
    for (int s = 0; s < 2; ++s) {
      const StreamGuard guard(*streams[s]);
      results.push_back(captured.Run(calls[which[s]]));
      behind.push_back(captured.Run(calls[1]));
    }
    for (int s = 0; s < 2; ++s) {
      EXPECT_EQ(failure(results[s]), expected[which[s]]) << i << " " << s;
      EXPECT_EQ(failure(behind[s]),
                expected[which[s]].empty() ? expected[1] : expected[which[s]]);
      const StreamGuard guard(*streams[s]);
      EXPECT_EQ(Bits(captured.Run(calls[0])), Bits(fn(calls[0])));
    }
  }
}

}  // namespace
}  // namespace d2l::nn
