#include "common/nn/hybrid.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/source_location.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/saved/saved.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::nn {
namespace {

using ir::Bits;
using testing::AllOf;
using testing::HasSubstr;

// A module of a function, which counts its runs.
class Function : public Module {
 public:
  explicit Function(std::function<Tensor(const Tensor&)> forward)
      : forward_(std::move(forward)) {}
  Tensor Forward(const Tensor& x) override {
    runs->fetch_add(1);
    return forward_(x);
  }
  std::string Name() const override { return "Function"; }

  std::shared_ptr<std::atomic<int>> runs =
      std::make_shared<std::atomic<int>>(0);

 private:
  std::function<Tensor(const Tensor&)> forward_;
};

// A parameter that may be replaced.
class Scale : public Module {
 public:
  explicit Scale(Tensor scale) : scale(std::move(scale)) {}
  Tensor Forward(const Tensor& x) override { return x * scale; }
  std::string Name() const override { return "Scale"; }
  void Members(MemberVisitor& visitor) override {
    visitor.Parameter("scale", scale);
  }

  Tensor scale;
};

Sequential Mlp(std::int64_t n, Device device = Device()) {
  return Sequential(Linear(n, n / 2, true, device), ReLU(),
                    Linear(n / 2, 2, true, device));
}

std::string ThrownBy(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing thrown";
}

std::string LastReason(const Hybrid& net) {
  return net.Report().programs.back().why;
}

class HybridTest : public DeviceTest {};

TEST_P(HybridTest, BitForBitAsTheModule) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  for (int run = 0; run < 30; ++run) {
    Sequential mlp;
    const int first = 1 + below(40);
    int width = first;
    for (int layers = 1 + below(4); layers > 0; --layers) {
      const int next = 1 + below(40);
      mlp.Append(Linear(width, next, below(2) == 0, device()));
      if (below(3) > 0) mlp.Append(ReLU());
      width = next;
    }
    Hybrid net = Hybridize(std::move(mlp));
    for (const int batch : {1, below(50), 0}) {
      for (int call = 0; call < 3; ++call) {
        const Tensor x = RandomTensor({batch, first}, device());
        EXPECT_EQ(Bits(net(x)), Bits(net.module()(x))) << net << x.shape();
      }
    }
    EXPECT_LE(net.Report().programs.size(), 3u);
    EXPECT_EQ(net.Report().eager_calls, 0);
  }
}

TEST_P(HybridTest, EachKindOfInputHasAProgram) {
  const Device other = OtherDevice(device());
  Hybrid net = Hybridize(Function([](const Tensor& x) { return x * 2 + 1; }));
  int calls = 0;
  const auto reason_for = [&](const Tensor& x) -> std::string {
    calls += 2;
    const std::size_t before = net.Report().programs.size();
    EXPECT_EQ(Bits(net(x)), Bits(x * 2 + 1));
    EXPECT_EQ(Bits(net(x)), Bits(x * 2 + 1));
    return net.Report().programs.size() > before ? LastReason(net) : "";
  };
  const Tensor x = RandomTensor({3, 4}, device());
  EXPECT_EQ(reason_for(x), "it is the first");
  EXPECT_EQ(reason_for(RandomTensor({3, 4}, device())), "");
  // The input's address does not matter.
  EXPECT_EQ(reason_for(RandomTensor({3, 4}, device(), DType::kFloat32,
                                    Placement::kOffset)),
            "");
  EXPECT_EQ(reason_for(T(RandomTensor({4, 3}, device()))),
            "the input had strides (4, 1) and has (1, 3)");
  EXPECT_EQ(reason_for(RandomTensor({2, 4}, device())),
            "the input had shape (3, 4) and has (2, 4)");
  EXPECT_EQ(reason_for(RandomTensor({2, 4}, device(), DType::kInt64)),
            "the input had dtype float32 and has int64");
  if (other != device()) {
    EXPECT_EQ(reason_for(RandomTensor({2, 4}, other, DType::kInt64)),
              "the input had device " + device().ToString() + " and has " +
                  other.ToString());
  }
  // All of these programs still exist.
  for (const Tensor& old : {x, T(RandomTensor({4, 3}, device()))}) {
    EXPECT_EQ(reason_for(old), "");
  }
  EXPECT_EQ(net.Report().calls(), calls);
}

TEST_P(HybridTest, RandomNumbersGoOn) {
  const auto dropout = [](const Tensor& x) {
    return Where(RandLike(x) > 0.5, x * 2, 0);
  };
  Hybrid net = Hybridize(Function(dropout));
  const Tensor x = RandomTensor({50}, device());
  ManualSeed(5, device());
  std::vector<std::string> eager, hybrid;
  for (int i = 0; i < 4; ++i) eager.push_back(Bits(dropout(x)));
  ManualSeed(5, device());
  for (int i = 0; i < 4; ++i) hybrid.push_back(Bits(net(x)));
  EXPECT_EQ(hybrid, eager);
  EXPECT_NE(hybrid[2], hybrid[3]);
}

TEST_P(HybridTest, ParametersInPlaceAndReplaced) {
  Hybrid net = Hybridize(Scale(Full({3}, 2, device())));
  auto& module = static_cast<Scale&>(net.module());
  const Tensor x = RandomTensor({3}, device());
  EXPECT_EQ(Bits(net(x)), Bits(x * 2));
  module.scale += 1;
  EXPECT_EQ(Bits(net(x)), Bits(x * 3));
  EXPECT_EQ(net.Report().programs.size(), 1u);
  module.scale = Full({1}, 5, device());
  EXPECT_EQ(Bits(net(x)), Bits(x * 5));
  EXPECT_EQ(Bits(net(x)), Bits(x * 5));
  EXPECT_EQ(net.Report().programs.size(), 2u);
  EXPECT_THAT(LastReason(net),
              AllOf(HasSubstr("the parameter \"scale\" was float32[3]"),
                    HasSubstr("and is another tensor, float32[1]")));
}

// The owner adds a layer, and its parameters are seen.
TEST_P(HybridTest, ALayerMore) {
  Hybrid net = Hybridize(Sequential(Linear(4, 3, true, device())));
  const Tensor x = RandomTensor({2, 4}, device());
  net(x);
  static_cast<Sequential&>(net.module()).Append(Scale(Ones({3}, device()) * 7));
  EXPECT_EQ(Bits(net(x)), Bits(net.module()(x)));
  EXPECT_EQ(net(x).shape(), (Shape{2, 3}));
  EXPECT_EQ(LastReason(net), "it had 2 parameters and has 3");
}

TEST_P(HybridTest, MovesToADevice) {
  const Device other = OtherDevice(device());
  Hybrid net = Hybridize(Mlp(6, device()));
  const Tensor x = RandomTensor({2, 6}, device());
  net(x);
  To(net, other);
  const Tensor there = d2l::To(x, other);
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(Bits(net(there)), Bits(net.module()(there)));
  }
  if (other != device()) {
    EXPECT_THAT(LastReason(net), HasSubstr("the input had device"));
    EXPECT_THROW(net(x), std::invalid_argument);
    EXPECT_EQ(net.Report().programs.size(), 2u);
  }
}

TEST_P(HybridTest, OneInAnother) {
  Hybrid net = Hybridize(
      Sequential(Linear(4, 4, true, device()), Hybridize(Mlp(4, device()))));
  auto& inner = static_cast<Hybrid&>(static_cast<Sequential&>(net.module())[1]);
  const Tensor x = RandomTensor({3, 4}, device());
  const std::string y = Bits(net(x));
  EXPECT_EQ(Bits(net(x)), y);
  EXPECT_EQ(inner.Report().programs.size(), 0u);
  EXPECT_EQ(inner.Report().eager_calls, 1);
  std::vector<std::string> names;
  for (const ir::Weight& weight : net.graph().weights) {
    names.push_back(weight.name);
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("0.weight", "0.bias",
                                                   "1.0.weight", "1.0.bias",
                                                   "1.2.weight", "1.2.bias"));
  // Another outer program may include the inner one.
  const Tensor row = RandomTensor({1, 4}, device());
  const std::string row_y = Bits(net.module()(row));
  EXPECT_EQ(inner.Report().programs.size(), 1u);
  EXPECT_EQ(Bits(net(row)), row_y);
  EXPECT_EQ(Bits(net(row)), row_y);
  EXPECT_EQ(inner.Report().calls(), 3);
  EXPECT_EQ(net.graph().weights.size(), 6u);
  static_cast<Linear&>(static_cast<Sequential&>(net.module())[0]).weight() *= 2;
  EXPECT_EQ(Bits(net(row)), Bits(net.module()(row)));
}

INSTANTIATE_FOR_ALL_DEVICES(HybridTest);

TEST(HybridizeTest, ABranchOnTheShapeIsDecidedAnew) {
  Hybrid net = Hybridize(Function(
      [](const Tensor& x) { return x.size(0) > 2 ? Sum(x, {0}) : x * 10; }));
  for (const std::int64_t rows : {1, 3, 2, 3, 1}) {
    const Tensor x = RandomTensor({rows, 2}, Device());
    EXPECT_EQ(Bits(net(x)), Bits(rows > 2 ? Sum(x, {0}) : x * 10));
  }
}

TEST(HybridizeTest, ABranchOnAFlagIsFrozen) {
  bool twice = true;
  Hybrid net =
      Hybridize(Function([&](const Tensor& x) { return twice ? x * 2 : x; }));
  const Tensor x = RandomTensor({2}, Device());
  net(x);
  twice = false;
  EXPECT_EQ(Bits(net(x)), Bits(x * 2));
  EXPECT_EQ(Bits(net(Ones({1}))), Bits(Ones({1})));  // decided again here
}

TEST(HybridizeTest, IntermediatesAreNotAllocated) {
  Hybrid net = Hybridize(Mlp(64));
  const Tensor x = RandomTensor({1, 64}, Device());
  net(x);
  net(x);
  const std::int64_t before = Memory(Device()).Stats().allocations;
  const Tensor y = net(x);
  EXPECT_EQ(Memory(Device()).Stats().allocations, before + 1);
}

TEST(HybridizeTest, GeneratesCppIfAsked) {
  Hybrid usual = Hybridize(Mlp(64));
  const Tensor x = RandomTensor({3, 64}, Device());
  usual(x);
  EXPECT_EQ(usual.captured().generated_source(), "");
  EXPECT_EQ(usual.Report().programs[0].not_generated, "");
  HybridOptions options;
  options.generate_cpp = true;
  options.cache_directory = testing::TempDir() + "/hybrid_test_cache";
  Hybrid net = Hybridize(Mlp(64), options);
  for (int call = 0; call < 3; ++call) {
    EXPECT_EQ(Bits(net(x)), Bits(net.module()(x)));
  }
  EXPECT_THAT(net.captured().generated_source(), HasSubstr("extern \"C\""));
  const HybridReport::Program program = net.Report().programs[0];
  EXPECT_EQ(program.not_generated, net.captured().not_generated());
  EXPECT_GT(program.generate_seconds, 0);
  EXPECT_GE(program.SecondsToCompile(), program.generate_seconds);
}

TEST(HybridizeTest, PrintsAndNamesAsTheModule) {
  const Hybrid net = Hybridize(Mlp(4));
  EXPECT_EQ(ToString(net), ToString(Mlp(4)));
  EXPECT_EQ(NamedParameters(net)[2].first, "2.weight");
  EXPECT_EQ(ToString(Hybridize(Linear(2, 1))),
            "Linear(in_features=2, out_features=1, bias=True)");
}

TEST(HybridizeTest, KeepsTheProgramBeforeAndAfterThePasses) {
  Hybrid net = Hybridize(Mlp(4));
  EXPECT_THAT(ThrownBy([&] { net.graph(); }), HasSubstr("call it once"));
  EXPECT_THAT(ThrownBy([&] { net.traced(); }), HasSubstr("call it once"));
  net(Ones({1, 4}));
  // Two products, biases and a ReLU; then the first bias and ReLU are one.
  EXPECT_EQ(ir::CountOperations(net.traced()), 5);
  EXPECT_EQ(ir::CountOperations(net.graph()), 4);
  EXPECT_EQ(net.graph().main().name, "Sequential");
  net(Ones({3, 4}));
  EXPECT_EQ(net.graph().main().type(0).shape(), (Shape{3, 4}));
}

TEST(HybridizeTest, SavesTheProgram) {
  const std::string prefix = testing::TempDir() + "/hybrid_test_mlp";
  Hybrid net = Hybridize(Mlp(4));
  EXPECT_THAT(ThrownBy([&] { net.Save(prefix).IgnoreError(); }),
              HasSubstr("Sequential has no program yet; call it once"));
  const Tensor x = RandomTensor({3, 4}, Device());
  const std::string y = Bits(net(x));
  ASSERT_TRUE(net.Save(prefix).ok()) << net.Save(prefix);
  const absl::StatusOr<ir::Graph> loaded = ir::LoadProgram(prefix);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Bits(ir::Run(*loaded, {x})[0]), y);
  EXPECT_FALSE(net.Save("/nowhere/mlp").ok());
}

TEST(HybridizeTest, AReadIsRefusedAndTheNextCallTriesAgain) {
  bool read = true;
  int made = 0;
  Hybrid net = Hybridize(Function([&](const Tensor& x) {
    made = __LINE__ + 1;
    const Tensor y = x * 2;
    if (read && Item<double>(y) > 0) return x;
    return y;
  }));
  const Tensor x = Full({1}, 3);
  for (int i = 0; i < 2; ++i) {
    const std::string error = ThrownBy([&] { net(x); });
    EXPECT_THAT(error,
                HasSubstr("[item] the value of a tensor is read at " +
                          SourceLocation(__FILE__, made + 1).ToString()));
    EXPECT_THAT(error, HasSubstr("It was made at " +
                                 SourceLocation(__FILE__, made).ToString()));
  }
  EXPECT_TRUE(net.Report().programs.empty());
  read = false;
  EXPECT_EQ(Bits(net(x)), Bits(x * 2));
  EXPECT_EQ(Bits(net(x)), Bits(x * 2));
  EXPECT_EQ(net.Report().programs.size(), 1u);
  EXPECT_EQ(net.Report().programs[0].calls, 2);
}

TEST(HybridizeTest, RefusalsNameTheCallersLine) {
  Hybrid net = Hybridize(Mlp(4));
  EXPECT_THAT(ThrownBy([&] {
                net(Ones({1, 5}));
              }),
              AllOf(HasSubstr("takes a float32 tensor of shape (*, 4)"),
                    HasSubstr("hybrid_test.cc:")));
  EXPECT_THROW(net(Tensor()), std::invalid_argument);
}

TEST(HybridizeTest, EightThreadsOneTrace) {
  // While one thread traces, the others find no program and wait for the lock.
  Function function([](const Tensor& x) {
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    return Tanh(x * 2) + 1;
  });
  const auto runs = function.runs;
  Hybrid net = Hybridize(std::move(function));
  const Tensor x = RandomTensor({100}, Device());
  const Tensor wide = RandomTensor({2, 100}, Device());
  const std::string y = Bits(Tanh(x * 2) + 1);
  const std::string wide_y = Bits(Tanh(wide * 2) + 1);
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      ready.fetch_add(1);
      while (ready.load() < 8) std::this_thread::yield();
      for (int call = 0; call < 50; ++call) {
        EXPECT_EQ(Bits(net(x)), y);
        EXPECT_EQ(Bits(net(wide)), wide_y);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs->load(), 2);
  EXPECT_EQ(net.Report().programs.size(), 2u);
  EXPECT_EQ(net.Report().calls(), 800);
}

TEST(HybridizeTest, NinePrograms) {
  Function function([](const Tensor& x) { return x * 2; });
  const auto runs = function.runs;
  Hybrid net = Hybridize(std::move(function));
  testing::internal::CaptureStderr();
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t n = 1; n <= 10; ++n) {
      const Tensor x = RandomTensor({n}, Device());
      EXPECT_EQ(Bits(net(x)), Bits(x * 2));
    }
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::StartsWith(
                        "[Hybridize] Function has 8 programs, and none for a "
                        "float32 tensor of shape (9) on cpu:0; "));
  EXPECT_EQ(text.find("[Hybridize]", 1), std::string::npos) << text;
  EXPECT_EQ(runs->load(), 8 + 4);
  EXPECT_EQ(net.Report().programs.size(), 8u);
  EXPECT_EQ(net.Report().eager_calls, 4);
  EXPECT_EQ(net.Report().calls(), 20);
}

// Each call has another parameter, so no program is used twice.
TEST(HybridizeTest, AParameterThatForwardReplaces) {
  class Counter : public Scale {
   public:
    using Scale::Scale;
    Tensor Forward(const Tensor& x) override {
      scale = scale + 1;
      return Scale::Forward(x);
    }
  };
  Hybrid net = Hybridize(Counter(Zeros({1})));
  testing::internal::CaptureStderr();
  for (int i = 1; i <= 10; ++i) {
    EXPECT_EQ(Bits(net(Ones({3}))), Bits(Full({3}, i)));
  }
  testing::internal::GetCapturedStderr();
}

TEST(HybridizeTest, WhatWritesToItsInputIsInterpreted) {
  Hybrid net = Hybridize(Function([](const Tensor& x) {
    Tensor y = x;
    y += 1;
    return y * 2;
  }));
  const Tensor x = Ones({3});
  for (int call = 0; call < 3; ++call) net(x);
  EXPECT_EQ(Bits(x), Bits(Full({3}, 4)));
  EXPECT_EQ(net.Report().programs[0].not_captured, "it writes to an argument");
}

// A listener of the thread sees all operations, and nothing is traced.
TEST(HybridizeTest, ListenersSeeTheOperations) {
  struct Counter : OpListener {
    void OnOp(const OpRecord&) override { ++ops; }
    int ops = 0;
  } counter;
  Hybrid net = Hybridize(Mlp(4));
  const Tensor x = Ones({1, 4});
  {
    const ScopedOpListener listen(&counter);
    net(x);
  }
  EXPECT_EQ(counter.ops, 7);  // and two transposed views
  EXPECT_EQ(net.Report().eager_calls, 1);
  EXPECT_EQ(net.Report().programs.size(), 0u);
}

TEST(HybridizeTest, MovedWithItsPrograms) {
  Hybrid net = Hybridize(Mlp(4));
  const Tensor x = RandomTensor({1, 4}, Device());
  const std::string y = Bits(net(x));
  Hybrid moved = std::move(net);
  EXPECT_EQ(Bits(moved(x)), y);
  EXPECT_EQ(moved.Report().programs.size(), 1u);
}

TEST(HybridReportTest, SaysWhatWasTracedAndWhenItPays) {
  HybridReport report;
  report.name = "Mlp";
  report.eager_calls = 1;
  report.programs.resize(2);
  HybridReport::Program& program = report.programs[0];
  program.input = "float32[1, 4]";
  program.why = "it is the first";
  program.calls = 40;
  program.trace_seconds = 0.0004;
  program.generate_seconds = 0.0001;
  program.passes = {{"inline", 5, 64, 0.0002}, {"fuse", 4, 48, 0.0001}};
  program.prepare_seconds = 0.0002;
  report.programs[1].input = "float32[2, 4]";
  report.programs[1].why = "the input had shape (1, 4) and has (2, 4)";
  report.programs[1].calls = 2;
  report.programs[1].not_captured = "it runs on a GPU";
  report.programs[1].not_generated = "there is no compiler";
  EXPECT_EQ(report.calls(), 43);
  EXPECT_DOUBLE_EQ(program.SecondsToCompile(), 0.001);
  EXPECT_EQ(report.ToString(),
            R"(Mlp: 43 calls, 1 of them not compiled; 2 programs
program 1 for float32[1, 4]: 40 calls; traced because it is the first
  1.000 ms: trace 0.400, executor and its first run 0.200, C++ 0.100, passes:
    inline: 5 operations, 64 bytes at the peak, 0.200 ms
    fuse: 4 operations, 48 bytes at the peak, 0.100 ms
program 2 for float32[2, 4]: 2 calls; traced because the input had shape (1, 4) and has (2, 4)
  0.000 ms: trace 0.000, executor and its first run 0.000, C++ 0.000, passes:
  the interpreter runs it: it runs on a GPU
  no C++: there is no compiler
)");
}

}  // namespace
}  // namespace d2l::nn
