#include "common/graph/captured.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/memory/memory.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/nn/functional.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::HasSubstr;
using Values = std::vector<Tensor>;

Tensor Numbers(const Shape& shape, float first = 0) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    values.push_back(first + 0.37f * static_cast<float>(i % 1000) - 100);
  }
  return FromVector(values, shape);
}

// Traces the function and optimises the program.
Graph Compiled(const TensorFunction& fn, const Values& inputs) {
  Graph graph = Trace(fn, inputs);
  Optimize(graph);
  return graph;
}

int CountFused(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.main().nodes) {
    count += node.kind == NodeKind::kFused;
  }
  return count;
}

// Rows end within strips, at their ends, and beyond.
TEST(CapturedTest, RowsAcrossTheEndsOfStrips) {
  const auto fn = [](const Values& in) -> Values {
    return {Relu(in[0] * in[1] + in[2]), in[1] - in[0]};
  };
  for (const std::int64_t width : {1, 2, 511, 512, 513, 1025}) {
    for (const std::int64_t height : {1, 3, 200}) {
      const Values inputs = {Numbers({height, width}), Numbers({width}, 7),
                             Full({1}, -3)};
      const Graph graph = Compiled(fn, inputs);
      EXPECT_EQ(CountFused(graph), 1);
      Captured captured(graph);
      EXPECT_EQ(captured.not_captured(), "");
      EXPECT_EQ(Bits(captured.Run(inputs)), Bits(fn(inputs)))
          << height << " x " << width;
    }
  }
}

// Results large enough for non-temporal stores and for several cores.
TEST(CapturedTest, LargeChains) {
  const auto fn = [](const Values& in) -> Values {
    Tensor x = in[0];
    for (int i = 0; i < 5; ++i) x = Relu(x * 1.5 - in[1]) + 1;
    return {x, Where(x > 2, x, 0)};
  };
  const Values inputs = {Numbers({1700, 1000}), Numbers({1000}, 3)};
  const Graph graph = Compiled(fn, inputs);
  Captured captured(graph);
  EXPECT_EQ(Bits(captured.Run(inputs)), Bits(fn(inputs)));
}

// More values at the same time than the stack has slots for.
TEST(CapturedTest, ManyValuesAtOnce) {
  const auto fn = [](const Values& in) -> Values {
    std::vector<Tensor> all;
    for (int i = 0; i < 20; ++i) all.push_back(in[0] * (i + 2));
    Tensor sum = all[0];
    for (int i = 19; i > 0; --i) sum = sum - all[i];
    return {sum};
  };
  const Values inputs = {Numbers({1000})};
  const Graph graph = Compiled(fn, inputs);
  Captured captured(graph);
  EXPECT_EQ(Bits(captured.Run(inputs)), Bits(fn(inputs)));
}

TEST(CapturedTest, OperationsWithLargeLayoutsRunAgain) {
  const auto fn = [](const Values& in) -> Values {
    const Tensor strided = Transpose(in[0] * 2, 0, 2);
    const Tensor integers = To(in[0], DType::kInt64);
    return {strided + Slice(strided, 1, 0, 1),
            Sum(Transpose(in[0] + 1, 1, 2), {0, 2}),
            FloorDivide(integers, integers * integers + 1),
            Cat({in[0] + 1, in[0] + 2, in[0] + 3, in[0] + 4, in[0] + 5}, 1)};
  };
  const Values inputs = {Numbers({3, 5, 7})};
  Captured captured(Compiled(fn, inputs));
  ASSERT_EQ(captured.not_captured(), "");
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(Bits(captured.Run(inputs)), Bits(fn(inputs)));
  }
}

TEST(CapturedTest, ResultsAreTheCallersOwn) {
  const auto fn = [](const Values& in) -> Values { return {in[0] * 1, in[0]}; };
  const Tensor x = Numbers({4});
  Captured captured(Compiled(fn, {x}));
  Values first = captured.Run({x});
  first[0] += 5;
  EXPECT_EQ(Bits(x), Bits(Numbers({4})));
  EXPECT_EQ(first[1].storage().get(), x.storage().get());
  const Values second = captured.Run({x});
  EXPECT_EQ(Bits(first[0]), Bits(x + 5));
  EXPECT_EQ(Bits(second[0]), Bits(x));
}

TEST(CapturedTest, WeightsAreReadAsTheyAre) {
  Tensor w = Numbers({3});
  const auto fn = [&](const Values& in) -> Values { return {in[0] * w + w}; };
  Captured captured(Compiled(fn, {Ones({3})}));
  captured.Run({Ones({3})});
  w += 1;
  EXPECT_EQ(Bits(captured.Run({Full({3}, 2)})), Bits(fn({Full({3}, 2)})));
}

TEST(CapturedTest, RandomNumbersGoOn) {
  const auto fn = [](const Values& in) -> Values {
    const Tensor unused = Rand({5});
    return {in[0] + Rand({3}), Randn({3}) - Randn({3})};
  };
  Captured captured(Compiled(fn, {Ones({3})}));
  ASSERT_EQ(captured.not_captured(), "");
  ManualSeed(3);
  std::vector<std::vector<std::string>> eager;
  for (int i = 0; i < 3; ++i) eager.push_back(Bits(fn({Ones({3})})));
  ManualSeed(3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Bits(captured.Run({Ones({3})})), eager[i]);
  }
}

// Each stream has an arena, and calls on both may be pending.
TEST(CapturedTest, StreamsAndThreads) {
  const auto fn = [](const Values& in) -> Values {
    return {Tanh(MatMul(in[0], T(in[0])) * 0.001) + 1};
  };
  const Values inputs = {Numbers({40, 30})};
  const std::vector<std::string> eager = Bits(fn(inputs));
  Captured captured(Compiled(fn, inputs));
  WaitToRead(inputs[0]);
  Stream* const streams[] = {&DefaultStream(Device()), &NewStream(Device())};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const StreamGuard guard(*streams[i % 2]);
      std::vector<Values> results;
      for (int run = 0; run < 50; ++run)
        results.push_back(captured.Run(inputs));
      for (const Values& result : results) EXPECT_EQ(Bits(result), eager);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CapturedTest, QueuedCallsOutliveIt) {
  const auto fn = [](const Values& in) -> Values {
    return {Tanh(in[0] * 2) * Numbers({1000})};
  };
  const Values inputs = {Numbers({1000})};
  Values results;
  {
    Captured captured(Compiled(fn, inputs));
    for (int i = 0; i < 20; ++i) results.push_back(captured.Run(inputs)[0]);
  }
  // The allocator reuses the freed memory.
  const Tensor other = Full({5000}, 3) * 2;
  for (const Tensor& result : results) {
    EXPECT_EQ(Bits(result), Bits(fn(inputs)[0]));
  }
}

// Even after passes, and if nothing uses the result.
TEST(CapturedTest, ALateErrorNamesTheOperationAndItsLine) {
  int line = 0;
  const auto fn = [&line](const Values& in) -> Values {
    line = __LINE__ + 1;
    const Tensor unused = FloorDivide(in[0], in[1]);
    return {Relu(in[0] * 2) + 1};
  };
  const Values good = {Ones({3}, {}, DType::kInt64),
                       Ones({3}, {}, DType::kInt64)};
  Captured captured(Compiled(fn, good));
  ASSERT_EQ(captured.not_captured(), "");
  captured.Run(good);
  const Values bad = {good[0], Zeros({3}, {}, DType::kInt64)};
  const Tensor result = captured.Run(bad)[0];
  try {
    ToVector<std::int64_t>(result);
    FAIL() << "nothing thrown";
  } catch (const AsyncError& error) {
    EXPECT_EQ(error.failure().operation, "floor_divide");
    EXPECT_EQ(error.failure().requested_at.line(), line);
    EXPECT_THAT(error.what(), HasSubstr("division by zero at element 0"));
  }
  // Captured does not compute with a failed result.
  EXPECT_THROW(captured.Run({result, good[1]}), AsyncError);
  EXPECT_EQ(Bits(captured.Run(good)), Bits(fn(good)));
}

TEST(CapturedTest, ListenersSeeTheOperations) {
  const auto fn = [](const Values& in) -> Values { return {in[0] * 2 + 1}; };
  Captured captured(Trace(fn, {Ones({3})}));
  struct Counter : OpListener {
    void OnOp(const OpRecord&) override { ++ops; }
    int ops = 0;
  } counter;
  {
    const ScopedOpListener listen(&counter);
    captured.Run({Ones({3})});
  }
  EXPECT_EQ(counter.ops, 3);
}

TEST(CapturedTest, SaysWhyItIsInterpreted) {
  const auto write = [](const Values& in) -> Values {
    Tensor x = in[0];
    x += 1;
    return {x};
  };
  Captured captured(Trace(write, {Ones({3})}));
  EXPECT_EQ(captured.not_captured(), "it writes to an argument");
  const Tensor x = Ones({3});
  captured.Run({x});
  EXPECT_EQ(Bits(x), Bits(Full({3}, 2)));
}

TEST(CapturedTest, WeightsAreWritten) {
  const auto run = [](bool compiled) {
    Tensor sum = Zeros({2, 3});
    Tensor other = Full({3}, 2);
    const auto fn = [&](const Values& in) -> Values {
      const Tensor before = sum * 2;
      sum[1] += in[0] * other;
      other *= 0.5;
      return {before + sum, T(sum)};
    };
    Captured captured(Compiled(fn, {Ones({3})}));
    EXPECT_EQ(captured.not_captured(), "");
    std::vector<std::string> bits;
    for (int call = 0; call < 4; ++call) {
      // An argument may be a weight.
      const Values in = {call == 2 ? other : Full({3}, call)};
      const std::uint64_t version = sum.version();
      for (const Tensor& x : compiled ? captured.Run(in) : fn(in)) {
        bits.push_back(Bits(x));
      }
      EXPECT_GT(sum.version(), version);
      bits.push_back(Bits(sum));
    }
    return bits;
  };
  EXPECT_EQ(run(true), run(false));
}

// Batch normalisation writes to two of its operands.
TEST(CapturedTest, RunningValuesAreWritten) {
  const auto run = [](bool compiled) {
    const Tensor mean = Zeros({3}), variance = Ones({3}), one = Ones({3});
    const auto fn = [&](const Values& in) -> Values {
      const Tensor before = mean * 2;
      BatchNorm(in[0], one, one, mean, variance, true);
      return {before, mean + variance,
              BatchNorm(in[0] * 2, one, one, mean, variance, false)};
    };
    Captured captured(Compiled(fn, {Numbers({5, 3})}));
    EXPECT_EQ(captured.not_captured(), "");
    std::vector<std::string> bits;
    for (int call = 0; call < 4; ++call) {
      const Values in = {Numbers({5, 3}, static_cast<float>(call))};
      const std::uint64_t version = variance.version();
      for (const Tensor& x : compiled ? captured.Run(in) : fn(in)) {
        bits.push_back(Bits(x));
      }
      EXPECT_GT(variance.version(), version);
      bits.push_back(Bits(mean));
      bits.push_back(Bits(variance));
    }
    return bits;
  };
  EXPECT_EQ(run(true), run(false));
  const Tensor one = Ones({3});
  const auto writes = [&](const Values& in) -> Values {
    return {BatchNorm(in[0], one, one, in[1], in[2], true)};
  };
  EXPECT_EQ(Captured(Trace(writes, {Numbers({5, 3}), Ones({3}), Ones({3})}))
                .not_captured(),
            "it writes to an argument");
}

TEST(CapturedTest, WeightsThatShareMemoryAreWrittenByTheInterpreter) {
  Tensor all = Zeros({2, 3});
  Tensor row = all[1];
  const auto fn = [&](const Values& in) -> Values {
    row += in[0];
    return {all * 2};
  };
  Captured captured(Trace(fn, {Ones({3})}));
  EXPECT_EQ(captured.not_captured(),
            "it writes to a weight, and two of them share memory");
  for (int call = 0; call < 3; ++call) {
    const Tensor expected = all * 2;
    const Tensor result = captured.Run({Ones({3})})[0];
    EXPECT_EQ(Bits(Values{result[0]}), Bits(Values{expected[0]}));
    EXPECT_EQ(Bits(Values{result[1]}), Bits(Values{expected[1] + 2}));
  }
}

TEST(CapturedTest, IntermediatesAreNotAllocated) {
  const auto fn = [](const Values& in) -> Values {
    const Tensor h = Relu(MatMul(in[0], T(in[0])));
    return {Sum(Tanh(h) - h)};
  };
  const Values inputs = {Numbers({50, 60})};
  Captured captured(Compiled(fn, inputs));
  captured.Run(inputs);
  DeviceMemory& memory = Memory(Device());
  const std::int64_t before = memory.Stats().allocations;
  const Values results = captured.Run(inputs);
  EXPECT_EQ(memory.Stats().allocations, before + 1);
  EXPECT_LT(captured.arena_bytes(), 4 * 2 * 50 * 50 + 1000);
}

}  // namespace
}  // namespace d2l::ir
