// The CUDA calls that Captured makes, and what happens if one fails: on a model
// of a GPU.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/device/cuda/cuda_errors.h"
#include "common/device/cuda/fake/fake_backend.h"
#include "common/device/cuda/fake/fake_cuda.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/graph/captured.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/kernels/tf32.h"
#include "common/ops/nn/functional.h"
#include "common/ops/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using Values = std::vector<Tensor>;

class CapturedCallsTest : public testing::Test {
 protected:
  CapturedCallsTest() {
    Graph graph = Trace(Fn, {x_, x_});
    Optimize(graph);
    captured_ = std::make_unique<Captured>(graph);
    captured_->Run({x_, x_});  // by the interpreter
    Synchronize(device_);
  }
  void TearDown() override {
    SetAllowTf32(false);
    EXPECT_THAT(cuda_.violations(), IsEmpty());
  }

  static Values Fn(const Values& in) {
    const Tensor h = Relu(MatMul(in[0], T(in[1])) + 1);
    return {Tanh(h) - h, Sum(h)};
  }
  // How often a call of captured_ calls the CUDA function.
  std::int64_t CallsOf(const std::string& function) {
    const std::int64_t before = cuda_.Calls(function);
    const Values results = captured_->Run({x_, x_});
    const std::int64_t calls = cuda_.Calls(function) - before;
    EXPECT_EQ(Bits(results), Bits(Fn({x_, x_})));
    return calls;
  }

  FakeCuda& cuda_ = FakeCudaOfBackend();
  const Device device_{DeviceType::kCuda, 0};
  const Tensor x_ = Full({3, 5}, 0.5, device_);
  std::unique_ptr<Captured> captured_;
};

// A launch, and a copy for each of two arguments and two results, which are
// small, each with the calls that every operation of a stream needs.
TEST_F(CapturedCallsTest, OfOneCall) {
  EXPECT_EQ(CallsOf("BeginCapture"), 1) << "it records";
  EXPECT_EQ(CallsOf("BeginCapture"), 0);
  EXPECT_EQ(CallsOf("LaunchKernel"), 0);
  EXPECT_EQ(CallsOf("LaunchGraph"), 1);
  EXPECT_EQ(CallsOf("CopyAsync"), 4);
  EXPECT_EQ(CallsOf("TakeLaunchError"), 3);
  EXPECT_EQ(CallsOf("Allocate"), 0);
  EXPECT_LE(CallsOf(""), 9) << "and an event now and then";
}

// Operations that check what they read are a part of the graph; for them a word
// is written before.
TEST_F(CapturedCallsTest, OfOperationsThatMayFailLate) {
  EXPECT_EQ(CallsOf("BeginCapture"), 1);
  EXPECT_EQ(CallsOf("WriteWord"), 0) << "none of these may";
  const Tensor table = Rand({6, 4}, device_);
  const auto fn = [&](const Values& in) -> Values {
    const Tensor h = IndexSelect(table, 0, in[0]);
    const Tensor picked = Gather(h, 1, Reshape(in[1], {3, 1}));
    const Tensor loss = CrossEntropy(h, in[1]);
    return {IndexAdd(table, 0, in[0], h), picked, loss,
            FloorDivide(in[0], in[1])};
  };
  const auto ints = [this](std::int64_t last) {
    return FromVector<std::int64_t>({1, 2, last}, {3}, device_);
  };
  const Values inputs = {ints(5), ints(3)};
  Graph graph = Trace(fn, inputs);
  Optimize(graph);
  Captured captured(graph);
  for (int i = 0; i < 2; ++i) captured.Run(inputs);
  for (const bool fails : {false, true, false}) {
    const Values in = {inputs[0], fails ? ints(4) : inputs[1]};
    const std::pair<const char*, int> expected[] = {{"LaunchKernel", 0},
                                                    {"LaunchGraph", 1},
                                                    {"WriteWord", 1},
                                                    {"CopyAsync", 6},
                                                    {"SynchronizeEvent", 0}};
    std::vector<std::int64_t> before;
    for (const auto& [f, calls] : expected) before.push_back(cuda_.Calls(f));
    const Values results = captured.Run(in);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto& [f, calls] = expected[i];
      EXPECT_EQ(cuda_.Calls(f), before[i] + calls) << f;
    }
    if (fails) {
      EXPECT_THROW(Bits(results), AsyncError);
    } else {
      EXPECT_EQ(Bits(results), Bits(fn(in)));
    }
  }
  EXPECT_EQ(captured.not_captured(), "");
}

// Kernels read large arguments, and write large results, in place; a chain is
// one kernel.
TEST_F(CapturedCallsTest, NothingLargeIsCopied) {
  const Tensor x = Rand({10'000'000}, device_);
  const auto fn = [](const Values& in) -> Values {
    return {Relu((in[0] * 2 - 1) * in[1]) + Sum(Relu(in[0] - 1))};
  };
  const Values inputs = {x, Full({}, 3, device_)};
  Graph graph = Trace(fn, inputs);
  Optimize(graph);
  Captured captured(graph);
  for (int i = 0; i < 2; ++i) captured.Run(inputs);
  EXPECT_EQ(captured.not_captured(), "");
  std::map<std::string, std::int64_t> before;
  const char* const functions[] = {"CopyAsync", "LaunchKernel", "LaunchGraph"};
  for (const char* f : functions) before[f] = cuda_.Calls(f);
  const Values results = captured.Run(inputs);
  for (const char* f : functions) before[f] = cuda_.Calls(f) - before[f];
  EXPECT_EQ(before["CopyAsync"], 1) << "one number";
  EXPECT_EQ(before["LaunchKernel"], 2) << "each of a chain";
  EXPECT_EQ(before["LaunchGraph"], 1) << "of the sum";
  EXPECT_TRUE(Equal(results[0], fn(inputs)[0]));
}

// A number is read through page-locked memory: one wait covers the result and
// its copy; there are two waits if other work is queued after it.
TEST_F(CapturedCallsTest, OfReadingANumber) {
  const double expected = Item(Fn({x_, x_})[1]);
  for (const bool last : {true, false}) {
    const Tensor sum = captured_->Run({x_, x_})[1];
    if (!last) captured_->Run({x_, x_});
    const std::int64_t waits = cuda_.Calls("SynchronizeEvent");
    const std::int64_t pageable = cuda_.Calls("pageable copies");
    EXPECT_EQ(Item(sum), expected);
    EXPECT_EQ(cuda_.Calls("SynchronizeEvent"), waits + (last ? 1 : 2));
    EXPECT_EQ(cuda_.Calls("pageable copies"), pageable);
  }
}

TEST_F(CapturedCallsTest, ItsGraphsGoWithIt) {
  const std::int64_t before = cuda_.Calls("DestroyGraph");
  captured_->Run({x_, x_});
  captured_.reset();
  EXPECT_EQ(cuda_.Calls("DestroyGraph"), before + 1);
}

// cuBLAS computes differently with TF32.
TEST_F(CapturedCallsTest, Tf32HasAGraphOfItsOwn) {
  EXPECT_EQ(CallsOf("BeginCapture"), 1);
  SetAllowTf32(true);
  EXPECT_EQ(CallsOf("LaunchGraph"), 0);
  EXPECT_EQ(CallsOf("BeginCapture"), 1);
  EXPECT_EQ(CallsOf("LaunchGraph"), 1);
  SetAllowTf32(false);
  EXPECT_EQ(CallsOf("BeginCapture"), 0);
  EXPECT_EQ(CallsOf("LaunchGraph"), 1);
}

TEST_F(CapturedCallsTest, TheInterpreterRunsWhatCudaDoesNotRecord) {
  for (const char* function : {"BeginCapture", "LaunchKernel", "EndCapture"}) {
    Captured captured(captured_->graph());
    captured.Run({x_, x_});
    EXPECT_EQ(captured.not_captured(), "");
    cuda_.FailNext(function, kCudaStreamCaptureInvalidated);
    const std::int64_t begun = cuda_.Calls("BeginCapture");
    for (int i = 0; i < 3; ++i) {
      const Values results = captured.Run({x_, x_});
      EXPECT_EQ(Bits(results), Bits(Fn({x_, x_}))) << function;
    }
    EXPECT_THAT(captured.not_captured(), HasSubstr("CUDA does not "));
    EXPECT_THAT(captured.not_captured(), HasSubstr("error 901")) << function;
    // Captured does not try again.
    EXPECT_LE(cuda_.Calls("BeginCapture"), begun + 1);
  }
}

// Momentum and parameters of a step of SGD: a launch each, in the graph or,
// with large gradients, which are not copied, for the call.
TEST_F(CapturedCallsTest, UpdatesOfAStepAreLaunchedTogether) {
  for (const std::int64_t size : {7, 20000}) {
    Values gradients, p, v;
    for (int i = 0; i < 5; ++i) {
      gradients.push_back(Full({size}, i, device_));
      p.push_back(Full({size}, 0.3, device_));
      v.push_back(Zeros({size}, device_));
    }
    const auto fn = [](const Values& p, const Values& v, const Values& in) {
      AxpbyInPlace(v, 1, in, 0.9);
      AxpbyInPlace(p, -0.1, v, 1);
    };
    Values eager_p, eager_v;
    for (int i = 0; i < 5; ++i) {
      eager_p.push_back(Clone(p[i]));
      eager_v.push_back(Clone(v[i]));
    }
    Captured captured(Trace(
        [&](const Values& in) -> Values {
          fn(p, v, in);
          return {};
        },
        gradients));
    fn(eager_p, eager_v, gradients);  // as the trace did
    const bool large = size > 7;
    for (int call = 0; call < 4; ++call) {
      const std::int64_t launches = cuda_.Calls("LaunchKernel");
      const std::int64_t graphs = cuda_.Calls("LaunchGraph");
      captured.Run(gradients);
      const std::int64_t launched = cuda_.Calls("LaunchKernel") - launches;
      if (call == 1) EXPECT_EQ(launched, 2) << "with those that are recorded";
      if (call > 1) EXPECT_EQ(launched, large ? 1 : 0);
      EXPECT_EQ(cuda_.Calls("LaunchGraph") - graphs, call == 0 ? 0 : 1);
      fn(eager_p, eager_v, gradients);
      EXPECT_EQ(Bits(p), Bits(eager_p));
      EXPECT_EQ(Bits(v), Bits(eager_v));
    }
    EXPECT_EQ(captured.not_captured(), "");
  }
}

// A reader need not wait for what the failed call has written.
TEST_F(CapturedCallsTest, ACallThatFailsHalfwayIsOver) {
  Tensor weight = Zeros({1'000'000}, device_);
  Captured captured(Trace(
      [&](const Values& in) -> Values {
        weight += 1;
        return {Rand({2}, device_) + in[0]};
      },
      {x_[0][0]}));
  for (int i = 0; i < 2; ++i) captured.Run({x_[0][0]});
  ASSERT_EQ(captured.not_captured(), "");
  Synchronize(device_);
  cuda_.FailNext("LaunchKernel", kCudaMemoryAllocation);
  EXPECT_THROW(captured.Run({x_[0][0]}), AsyncError);
  EXPECT_TRUE(DefaultStream(device_).Query());
}

TEST_F(CapturedCallsTest, ALaunchThatFailsThrows) {
  captured_->Run({x_, x_});
  for (const char* function : {"LaunchGraph", "CopyAsync"}) {
    cuda_.FailNext(function, kCudaMemoryAllocation);
    try {
      captured_->Run({x_, x_});
      FAIL() << "nothing thrown";
    } catch (const AsyncError& error) {
      EXPECT_THAT(error.what(), HasSubstr("cudaErrorMemoryAllocation"));
    }
    EXPECT_EQ(CallsOf("LaunchGraph"), 1) << "it goes on";
  }
}

}  // namespace
}  // namespace d2l::ir
