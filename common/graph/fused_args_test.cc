#include "common/graph/fused_args.h"

#include <optional>
#include <vector>

#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using kernels::FusedArgs;
using Ref = FusedArgs::Ref;
using Values = std::vector<Tensor>;

// The arguments for the function's only region.
std::optional<FusedArgs> ArgsOf(const TensorFunction& fn,
                                const Values& inputs) {
  Graph graph = Trace(fn, inputs);
  Fuse(graph);
  for (const Node& node : graph.main().nodes) {
    if (node.kind == NodeKind::kFused) return FusedArgsOf(*node.body);
  }
  ADD_FAILURE() << "there is no region";
  return std::nullopt;
}

// Whether a kernel holds the function of one argument of this dtype.
bool Fits(DType dtype, Tensor (*fn)(const Tensor& x)) {
  return ArgsOf([fn](const Values& in) -> Values { return {fn(in[0])}; },
                {Ones({4}, {}, dtype)})
      .has_value();
}

TEST(FusedArgsTest, StepsAndOperands) {
  const std::optional<FusedArgs> args = ArgsOf(
      [](const Values& in) -> Values {
        const Tensor h = Relu(in[0] * 2 + in[1]);
        return {h, h < in[2]};
      },
      {Ones({3, 4}), Ones({4}), Ones({})});
  ASSERT_TRUE(args.has_value());
  EXPECT_EQ(args->numel, 12);
  ASSERT_EQ(args->steps, 4);
  const auto expect = [](Ref ref, Ref::Kind kind, int index) {
    EXPECT_EQ(ref.kind, kind);
    EXPECT_EQ(ref.index, index);
  };
  const FusedArgs::Step* const step = args->step;
  expect(step[0].in[0], Ref::kEach, 0);
  expect(step[0].in[1], Ref::kNumber, 0);
  EXPECT_EQ(args->numbers[0], 2);
  expect(step[0].out, Ref::kSlot, 0);
  expect(step[1].in[0], Ref::kSlot, 0);
  expect(step[1].in[1], Ref::kRow, 1);
  EXPECT_EQ(args->memory[1].period, 4u);
  expect(step[1].out, Ref::kSlot, 0);
  expect(step[2].in[0], Ref::kSlot, 0);
  expect(step[2].out, Ref::kEach, 3);
  expect(step[3].in[0], Ref::kEach, 3);
  expect(step[3].in[1], Ref::kOne, 2);
  expect(step[3].out, Ref::kEach, 4);
  EXPECT_FALSE(args->memory[3].is_uint8);
  EXPECT_TRUE(args->memory[4].is_uint8);
}

TEST(FusedArgsTest, OfOtherTypes) {
  const auto twice = [](const Tensor& x) { return x * 2 + 1; };
  EXPECT_TRUE(Fits(DType::kFloat32, twice));
  EXPECT_FALSE(Fits(DType::kFloat64, twice));
  EXPECT_FALSE(Fits(DType::kInt64, twice));
  EXPECT_FALSE(Fits(DType::kUInt8, twice)) << "it wraps around";
  EXPECT_TRUE(
      Fits(DType::kUInt8, [](const Tensor& x) { return Where(x > 1, x, 3); }));
  EXPECT_FALSE(Fits(DType::kFloat32,
                    [](const Tensor& x) { return To(x * 2, DType::kInt64); }));
}

TEST(FusedArgsTest, NoMoreThanTheKernelHolds) {
  const auto chain = [](int steps) {
    return ArgsOf(
               [steps](const Values& in) -> Values {
                 Tensor x = in[0];
                 for (int i = 0; i < steps; ++i) x = Tanh(x);
                 return {x};
               },
               {Ones({4})})
        .has_value();
  };
  EXPECT_TRUE(chain(FusedArgs::kMaxSteps));
  EXPECT_FALSE(chain(FusedArgs::kMaxSteps + 1));
  const auto numbers = [](int count) {
    return ArgsOf(
               [count](const Values& in) -> Values {
                 Tensor x = in[0];
                 for (int i = 0; i < count; ++i) x = x + i;
                 return {x};
               },
               {Ones({4})})
        .has_value();
  };
  EXPECT_TRUE(numbers(FusedArgs::kMaxNumbers));
  EXPECT_FALSE(numbers(FusedArgs::kMaxNumbers + 1));
  const auto live = [](int count) {
    return ArgsOf(
               [count](const Values& in) -> Values {
                 Values all;
                 for (int i = 0; i < count; ++i) all.push_back(Tanh(in[i % 4]));
                 Tensor sum = all[0];
                 for (int i = 1; i < count; ++i) sum = sum * all[i];
                 return {sum};
               },
               {Ones({4}), Ones({4}), Ones({4}), Ones({4})})
        .has_value();
  };
  EXPECT_TRUE(live(FusedArgs::kMaxSlots));
  EXPECT_FALSE(live(FusedArgs::kMaxSlots + 1));
  const auto arguments = [](int count) {
    return ArgsOf(
               [](const Values& in) -> Values {
                 Tensor sum = in[0];
                 for (const Tensor& x : in) sum = sum * x;
                 return {sum};
               },
               Values(count, Ones({4})))
        .has_value();
  };
  EXPECT_TRUE(arguments(FusedArgs::kMaxMemory - 1));
  EXPECT_FALSE(arguments(FusedArgs::kMaxMemory));
}

}  // namespace
}  // namespace d2l::ir
