#include <string>
#include <vector>

#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/kernels/op_tables.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitives.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

Tensor Floats(const Shape& shape) {
  return TypeOf(ValueSpec{shape, DType::kFloat32, Device()});
}

// `number` is the second operand if the operation is given one operand.
BinaryPrimitive Binary(kernels::BinaryOp op, double number = 0) {
  return {op,
          number == 0 ? BinaryPrimitive::Which::kNone
                      : BinaryPrimitive::Which::kSecond,
          number};
}

// (1+2) + (3+4), as three calls.
TEST(InlineTest, PutsBodiesWhereTheyAreCalled) {
  const BinaryPrimitive add = Binary(kernels::BinaryOp::kAdd);
  Graph graph;
  const int weight = graph.AddWeight("w", Floats({}));
  Function sum("sum");
  const ValueId a = sum.AddArgument(Floats({}), "a");
  const ValueId b = sum.AddArgument(Floats({}), "b");
  const ValueId w = sum.AddWeight(graph, weight);
  sum.returns = {sum.AddOp(add, {sum.AddOp(add, {a, b}, {"sum.d2l", 2}), w},
                           {"sum.d2l", 3})};
  sum.nodes.back().op.requested_by = {"caller.d2l", 9};
  graph.functions.push_back(sum);
  Function main("main");
  const ValueId x = main.AddArgument(Floats({}), "a");
  const ValueId one = main.AddConstant(FromVector<float>({1}, {}));
  const ValueId p = main.AddCall(graph, 0, {x, one}, {"main.d2l", 1})[0];
  const ValueId q = main.AddCall(graph, 0, {p, p}, {"main.d2l", 2})[0];
  main.values[one].name = "one";
  main.values[p].name = "p";
  main.values[q].name = "q";
  main.returns = {q, x};
  graph.functions.push_back(main);
  Inline(graph);
  ASSERT_NO_THROW(Verify(graph));
  EXPECT_EQ(ToText(graph),
            R"(def main(%a: float32[]) {
  %one = constant [1] : float32[]
  %0 = weight "w" : float32[]
  %1 = add(%a, %one) : float32[] @"sum.d2l":2 by "main.d2l":1
  %p = add(%1, %0) : float32[] @"sum.d2l":3 by "caller.d2l":9
  %2 = add(%p, %p) : float32[] @"sum.d2l":2 by "main.d2l":2
  %q = add(%2, %0) : float32[] @"sum.d2l":3 by "caller.d2l":9
  return %q, %a
}
)");
}

TEST(InlineTest, CallsInCallsAndWritesToArguments) {
  Graph graph;
  Function increment("increment");
  const ValueId i = increment.AddArgument(Floats({2}));
  increment.AddInPlace(Binary(kernels::BinaryOp::kAdd, 1), {i}, i);
  increment.returns = {i};
  graph.functions.push_back(increment);
  Function twice("twice");
  const ValueId t = twice.AddArgument(Floats({2}));
  twice.AddCall(graph, 0, twice.AddCall(graph, 0, {t}));
  graph.functions.push_back(twice);
  Function main("main");
  const ValueId x = main.AddArgument(Floats({2}));
  const ValueId y = main.AddOp(Binary(kernels::BinaryOp::kMultiply, 2), {x});
  main.AddCall(graph, 1, {y});
  main.returns = {y, main.AddOp(UnaryPrimitive(kernels::UnaryOp::kRelu), {y})};
  graph.functions.push_back(main);
  const std::vector<std::string> before = Bits(ir::Run(graph, {Ones({2})}));
  EXPECT_EQ(before[1], Bits(Full({2}, 4)));
  // Simplify leaves values alone that a call may write.
  Simplify(graph);
  MergeCommonSubexpressions(graph);
  RemoveDeadCode(graph);
  Fuse(graph);
  EXPECT_EQ(Bits(ir::Run(graph, {Ones({2})})), before);
  Inline(graph);
  ASSERT_NO_THROW(Verify(graph));
  EXPECT_EQ(graph.functions.size(), 1u);
  EXPECT_EQ(Bits(ir::Run(graph, {Ones({2})})), before);
}

}  // namespace
}  // namespace d2l::ir
