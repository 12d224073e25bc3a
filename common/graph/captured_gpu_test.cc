// Captured on a GPU, or on a model of one. random_program_test.cc covers most
// of the programs.

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/memory/memory.h"
#include "common/device/testing/testing.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/kernels/op_tables.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::HasSubstr;
using Values = std::vector<Tensor>;

std::vector<Device> Gpus() {
  std::vector<Device> gpus;
  for (const Device device : AllDevices()) {
    if (device.type() == DeviceType::kCuda) gpus.push_back(device);
  }
  return gpus;
}

class CapturedGpuTest : public testing::TestWithParam<Device> {
 protected:
  Tensor Numbers(const Shape& shape, float first = 0) const {
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      values.push_back(first + 0.37f * static_cast<float>(i % 1000) - 100);
    }
    return FromVector(values, shape, device_);
  }

  static Graph Compiled(const TensorFunction& fn, const Values& inputs) {
    Graph graph = Trace(fn, inputs);
    Optimize(graph);
    return graph;
  }

  // Makes calls that run the interpreter, capture, and launch again.
  static void ExpectAsEager(Captured& captured, const TensorFunction& fn,
                            const std::vector<Values>& calls) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(Bits(captured.Run(calls[i])), Bits(fn(calls[i])))
          << "call " << i;
    }
    EXPECT_EQ(captured.not_captured(), "");
  }

  const Device device_ = GetParam();
};

TEST_P(CapturedGpuTest, AnMlpOfOtherNumbers) {
  Tensor w = Numbers({7, 5}, 98);
  const Tensor b = Numbers({5});
  const auto fn = [&](const Values& in) -> Values {
    const Tensor h = Relu(MatMul(in[0], w) + b);
    return {Softmax(MatMul(h, T(w)) * 0.01, 1), h};
  };
  Captured captured(Compiled(fn, {Numbers({3, 7})}));
  ExpectAsEager(captured, fn,
                {{Numbers({3, 7})},
                 {Numbers({3, 7}, 1)},
                 {Numbers({3, 7}, 2)},
                 {Numbers({3, 7}, 3)}});
  w += 1;  // the program reads the current values
  ExpectAsEager(captured, fn, {{Numbers({3, 7}, 4)}});
}

// Arguments are copied with their gaps; returned arguments are the caller's
// tensors.
TEST_P(CapturedGpuTest, ArgumentsOfAllLayouts) {
  const auto fn = [](const Values& in) -> Values {
    return {in[0] + in[1],   in[2] * 2, in[3] * in[0],
            Sum(in[4], {0}), T(in[0]),  in[2]};
  };
  const auto arguments = [this](float first) -> Values {
    return {T(Numbers({3, 4}, first)), Slice(Numbers({4, 9}, first), 1, 2, 5),
            Slice(Numbers({9}, first), 0, 1, 9, 3),
            Expand(Numbers({1, 3}, first), {4, 3}), Numbers({0, 3})};
  };
  Captured captured(Compiled(fn, arguments(0)));
  ExpectAsEager(captured, fn,
                {arguments(0), arguments(1), arguments(2), arguments(3)});
  const Values in = arguments(5);
  const Values out = captured.Run(in);
  EXPECT_EQ(out[4].storage().get(), in[0].storage().get());
  EXPECT_EQ(out[5].storage().get(), in[2].storage().get());
}

// Puts each operation between two cheap ones, so that there is a region, with
// operands of all kinds.
TEST_P(CapturedGpuTest, ARegionHasTheBitsOfItsOperations) {
  using Which = BinaryPrimitive::Which;
  std::vector<std::pair<std::string, TensorFunction>> functions;
  const SourceLocation requested_at = SourceLocation::Current();
  const auto add = [&](const std::string& name, const auto& function) {
    functions.emplace_back(name, [function](const Values& in) -> Values {
      return {function(in[0] * 0.5, in[1], in[2])};
    });
  };
  for (const auto& row : kernels::kOpInfos<kernels::UnaryOp>) {
    add(row.name, [op = row.op, requested_at](Tensor x, Tensor y, Tensor) {
      return Apply(UnaryPrimitive(op), {&x}, requested_at) - y;
    });
  }
  for (const auto& row : kernels::kOpInfos<kernels::BinaryOp>) {
    if (row.op == kernels::BinaryOp::kPow) continue;
    for (const Which which : {Which::kNone, Which::kFirst, Which::kSecond}) {
      add(row.name,
          [op = row.op, which, requested_at](Tensor x, Tensor y, Tensor) {
            const BinaryPrimitive binary(op, which, -0.0);
            if (which != Which::kNone) return Apply(binary, {&x}, requested_at);
            return Apply(binary, {&x, &y}, requested_at);
          });
    }
  }
  add("where", [](Tensor x, Tensor y, Tensor one) {
    return Where(Where(x < y, x == x, 0) != 0, Where(x > one, x, 7), y);
  });
  add("to", [](Tensor x, Tensor y, Tensor one) {
    return To(To(x, DType::kUInt8), DType::kFloat32) * one + y;
  });
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {
      0.0f, -0.0f, kInfinity, -kInfinity, std::nanf(""), 1e-45f, 3e38f, 600};
  for (const Shape& shape : {Shape{3, 5}, Shape{1}, Shape{7, 1001}}) {
    std::vector<float> values(shape.numel());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = i % 3 == 0 ? special[i / 3 % special.size()]
                             : 0.37f * static_cast<float>(i % 100) - 20;
    }
    const std::vector<float> row(values.rbegin(),
                                 values.rbegin() + shape[shape.rank() - 1]);
    const Values inputs = {FromVector(values, shape, device_),
                           FromVector(row, {shape[shape.rank() - 1]}, device_),
                           Full({1}, 3, device_)};
    for (const auto& [name, function] : functions) {
      Captured captured(Compiled(function, inputs));
      EXPECT_EQ(CountOperations(captured.graph()), 1) << name;
      captured.Run(inputs);
      const Tensor fused = To(captured.Run(inputs)[0], DType::kFloat32);
      const Tensor eager = To(function(inputs)[0], DType::kFloat32);
      const std::vector<float> a = ToVector<float>(fused);
      const std::vector<float> b = ToVector<float>(eager);
      for (std::size_t i = 0; i < b.size(); ++i) {
        // The model's compiler orders operands, and so decides a NaN's sign.
        if (std::isnan(a[i]) && std::isnan(b[i])) continue;
        ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(float)), 0)
            << name << " " << shape.ToString() << ": element " << i << " is "
            << a[i] << ", not " << b[i];
      }
    }
  }
}

TEST_P(CapturedGpuTest, WhatIsNoRegionsKernelRunsByOperations) {
  const auto wide = [](const Values& in) -> Values {
    std::vector<Tensor> values;
    for (int i = 0; i < 10; ++i) values.push_back(in[0] * i);
    Tensor sum = in[0] + 1;
    for (const Tensor& value : values) sum = value - sum;
    return {sum};
  };
  Captured captured(Compiled(wide, {Numbers({5})}));
  EXPECT_GT(CountOperations(captured.graph()), 10);
  ExpectAsEager(captured, wide, {{Numbers({5})}, {Numbers({5}, 1)}});
}

TEST_P(CapturedGpuTest, ResultsAreTheCallersOwn) {
  const auto fn = [this](const Values& in) -> Values {
    Tensor written = Full({4}, 2, device_);
    written += in[0];
    return {in[0] * 3, written, FromVector<float>({1, 2}, {2}, device_)};
  };
  Captured captured(Compiled(fn, {Numbers({4})}));
  std::vector<Values> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(captured.Run({Numbers({4}, static_cast<float>(i))}));
    for (Tensor& result : all.back()) result += 5;
  }
  EXPECT_EQ(captured.not_captured(), "");
  for (int i = 0; i < 4; ++i) {
    Values eager = fn({Numbers({4}, static_cast<float>(i))});
    for (Tensor& result : eager) result += 5;
    EXPECT_EQ(Bits(all[i]), Bits(eager)) << "call " << i;
  }
}

// The second kernel of a sum reads what the first left in scratch memory.
TEST_P(CapturedGpuTest, ScratchMemoryIsItsOwn) {
  const auto fn = [](const Values& in) -> Values {
    return {Sum(in[0]), Sum(in[0] * 2)};
  };
  const Values inputs = {Numbers({100'000})};
  Captured captured(Compiled(fn, inputs));
  ExpectAsEager(captured, fn, {inputs, inputs});
  // Fill all small blocks that are free now with tensors.
  Values others;
  for (int i = 1; i <= 200; ++i) others.push_back(Full({i}, i, device_));
  for (int i = 0; i < 3; ++i) captured.Run(inputs);
  for (int i = 1; i <= 200; ++i) {
    EXPECT_EQ(Bits(others[i - 1]), Bits(Full({i}, i, device_)));
  }
}

TEST_P(CapturedGpuTest, StreamsAndThreads) {
  const auto fn = [](const Values& in) -> Values {
    return {Tanh(MatMul(in[0], T(in[0])) * 0.001) + 1};
  };
  std::vector<Values> inputs;
  std::vector<std::vector<std::string>> eager;
  for (int i = 0; i < 2; ++i) {
    inputs.push_back({Numbers({4, 3}, static_cast<float>(i))});
    eager.push_back(Bits(fn(inputs[i])));
  }
  Captured captured(Compiled(fn, inputs[0]));
  Synchronize(device_);
  Stream* const streams[] = {&DefaultStream(device_), &NewStream(device_)};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const StreamGuard guard(*streams[i % 2]);
      std::vector<Values> results;
      for (int run = 0; run < 20; ++run) {
        results.push_back(captured.Run(inputs[(i + run) % 2]));
      }
      for (int run = 0; run < 20; ++run) {
        EXPECT_EQ(Bits(results[run]), eager[(i + run) % 2]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(captured.not_captured(), "");
}

TEST_P(CapturedGpuTest, QueuedCallsOutliveIt) {
  const auto fn = [this](const Values& in) -> Values {
    return {Tanh(in[0] * 2) * Numbers({1000})};
  };
  const Values inputs = {Numbers({1000})};
  Values results;
  {
    Captured captured(Compiled(fn, inputs));
    for (int i = 0; i < 10; ++i) results.push_back(captured.Run(inputs)[0]);
    EXPECT_EQ(captured.not_captured(), "");
  }
  // The allocator reuses the freed memory.
  const Tensor other = Full({5000}, 3, device_) * 2;
  for (const Tensor& result : results) {
    EXPECT_EQ(Bits(result), Bits(fn(inputs)[0]));
  }
}

TEST_P(CapturedGpuTest, OnlyResultsAreAllocated) {
  const auto fn = [](const Values& in) -> Values {
    const Tensor h = Relu(MatMul(in[0], T(in[0])));
    return {Sum(Tanh(h) - h), h * 2};
  };
  const Values inputs = {Numbers({50, 6})};
  Captured captured(Compiled(fn, inputs));
  for (int i = 0; i < 2; ++i) captured.Run(inputs);
  const std::int64_t before = Memory(device_).Stats().allocations;
  const Values results = captured.Run(inputs);
  EXPECT_EQ(Memory(device_).Stats().allocations, before + 2);
}

TEST_P(CapturedGpuTest, RandomNumbersGoOn) {
  const auto fn = [&](const Values& in) -> Values {
    return {(in[0] * 2 + Rand({3}, device_)) * 3};
  };
  const Values inputs = {Ones({3}, device_)};
  Captured captured(Compiled(fn, inputs));
  ManualSeed(3);
  std::vector<std::vector<std::string>> eager;
  for (int i = 0; i < 4; ++i) eager.push_back(Bits(fn(inputs)));
  ManualSeed(3);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Bits(captured.Run(inputs)), eager[i]);
  EXPECT_EQ(captured.not_captured(), "");
}

TEST_P(CapturedGpuTest, ALateErrorNamesTheOperationAndItsLine) {
  const Values good = {Ones({3}, device_, DType::kInt64),
                       Ones({3}, device_, DType::kInt64)};
  const Values bad = {good[0], Zeros({3}, device_, DType::kInt64)};
  const BinaryPrimitive divide(kernels::BinaryOp::kFloorDivide,
                               BinaryPrimitive::Which::kNone, 0);
  int line = 0;
  const std::function<Tensor(const Values&)> fns[] = {
      [&line](const Values& in) {
        line = __LINE__ + 1;
        return FloorDivide(in[0], in[1]);
      },
      [&](const Values& in) {
        Tensor x = in[0] * 2;
        line = __LINE__ + 1;
        ApplyInPlace(divide, {&x, &in[1]}, x, SourceLocation::Current());
        return x;
      }};
  for (const auto& fn : fns) {
    const auto program = [&](const Values& in) -> Values {
      return {Relu(fn(in) + 1) * 2};
    };
    Captured captured(Compiled(program, good));
    for (int i = 0; i < 3; ++i) captured.Run(good);
    EXPECT_EQ(captured.not_captured(), "");
    const Tensor before = captured.Run(good)[0];
    const Tensor result = captured.Run(bad)[0];
    const Tensor behind = captured.Run(good)[0];
    for (const Tensor& x : {result, behind, result}) {
      try {
        ToVector<std::int64_t>(x);
        FAIL() << "nothing thrown";
      } catch (const AsyncError& error) {
        EXPECT_EQ(error.failure().operation, "floor_divide");
        EXPECT_EQ(error.failure().requested_at.line(), line);
        EXPECT_THAT(error.what(), HasSubstr("division by zero at element 0"));
      }
    }
    for (const Tensor& x : {before, captured.Run(good)[0]}) {
      EXPECT_EQ(Bits(Values{x}), Bits(program(good)));
    }
  }
}

// After the report the stream takes the call's later operations for valid.
TEST_P(CapturedGpuTest, AnErrorMayBeReportedInTheMidstOfACall) {
  const Values good = {Ones({3}, device_, DType::kInt64),
                       Ones({3}, device_, DType::kInt64)};
  const Values bad = {good[0], Zeros({3}, device_, DType::kInt64)};
  Captured captured(Compiled(
      [](const Values& in) -> Values {
        return {FloorDivide(FloorDivide(in[0], in[1]) + 1, in[0]) * 2};
      },
      good));
  for (int i = 0; i < 2; ++i) captured.Run(good);
  std::atomic<bool> over{false};
  std::thread reporter([&] {
    while (!over) {
      try {
        Synchronize(device_);
      } catch (const AsyncError&) {
      }
    }
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_THROW(ToVector<std::int64_t>(captured.Run(bad)[0]), AsyncError);
  }
  over = true;
  reporter.join();
}

// Captured does not compute with a failed argument.
TEST_P(CapturedGpuTest, AFailedArgument) {
  const auto fn = [](const Values& in) -> Values { return {in[0] * 2 + 1}; };
  const Values good = {Ones({3}, device_, DType::kInt64)};
  Captured captured(Compiled(fn, good));
  for (int i = 0; i < 2; ++i) captured.Run(good);
  const Tensor bad = FloorDivide(good[0], Zeros({3}, device_, DType::kInt64));
  EXPECT_THROW(Synchronize(device_), AsyncError);
  EXPECT_THROW(captured.Run({bad}), AsyncError);
  EXPECT_EQ(Bits(captured.Run(good)), Bits(fn(good)));
}

TEST_P(CapturedGpuTest, ListenersSeeTheOperations) {
  const auto fn = [](const Values& in) -> Values { return {in[0] * 2 + 1}; };
  const Values inputs = {Ones({3}, device_)};
  Captured captured(Compiled(fn, inputs));
  for (int i = 0; i < 2; ++i) captured.Run(inputs);
  struct Counter : OpListener {
    void OnOp(const OpRecord&) override { ++ops; }
    int ops = 0;
  } counter;
  {
    const ScopedOpListener listen(&counter);
    captured.Run(inputs);
  }
  EXPECT_EQ(counter.ops, 2);
}

TEST_P(CapturedGpuTest, WhatCudaGraphsCannotDo) {
  const auto write = [](const Values& in) -> Values {
    Tensor x = in[0];
    x += 1;
    return {x};
  };
  Captured writes(Trace(write, {Ones({3}, device_)}));
  EXPECT_EQ(writes.not_captured(), "it writes to an argument");
  const auto move = [this](const Values& in) -> Values {
    return {To(in[0], device_) + 1};
  };
  Captured moves(Trace(move, {Ones({3})}));
  EXPECT_EQ(moves.not_captured(), "it runs on several devices");
  for (int i = 0; i < 3; ++i) {
    const Tensor x = Ones({3}, device_);
    writes.Run({x});
    EXPECT_EQ(Bits(x), Bits(Full({3}, 2)));
    EXPECT_EQ(Bits(moves.Run({Ones({3})})), Bits(Values{Full({3}, 2)}));
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CapturedGpuTest);
INSTANTIATE_TEST_SUITE_P(All, CapturedGpuTest, testing::ValuesIn(Gpus()),
                         DeviceTestName);

}  // namespace
}  // namespace d2l::ir
