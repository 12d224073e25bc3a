#include <string>
#include <vector>

#include "common/graph/interpreter.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using Values = std::vector<Tensor>;

int Operations(const TensorFunction& fn, const Values& inputs) {
  Graph graph = Trace(fn, inputs);
  const std::vector<std::string> before = Bits(ir::Run(graph, inputs));
  MergeCommonSubexpressions(graph);
  EXPECT_TRUE(Verify(graph).ok()) << Verify(graph);
  EXPECT_EQ(Bits(ir::Run(graph, inputs)), before);
  RemoveDeadCode(graph);
  EXPECT_EQ(Bits(ir::Run(graph, inputs)), before);
  return CountOperations(graph);
}

TEST(CommonSubexpressionsTest, EqualOperationsOnEqualValues) {
  EXPECT_EQ(Operations(
                [](const Values& in) -> Values {
                  const Tensor a = Exp(T(in[0])) * 2;
                  const Tensor b = Exp(T(in[0])) * 2;
                  return {a + b};
                },
                {Ones({2, 3})}),
            3);
}

TEST(CommonSubexpressionsTest, OtherAttributesAndOrderAreOther) {
  EXPECT_EQ(Operations(
                [](const Values& in) -> Values {
                  return {(in[0] * 2) - (in[0] * 2.5) + (2 - in[0]) -
                          (in[0] - 2) + (in[0] - in[1]) * (in[1] - in[0])};
                },
                {Ones({2}), Ones({2})}),
            11);
  // 0.0 and -0.0 are other numbers.
  EXPECT_EQ(Operations(
                [](const Values& in) -> Values {
                  return {(in[0] + 0.0) * (in[0] + -0.0)};
                },
                {Full({2}, -0.0)}),
            3);
}

TEST(CommonSubexpressionsTest, TwoResultsAreTwoTensors) {
  const auto fn = [](const Values& in) -> Values {
    return {in[0] * 2, in[0] * 2, T(in[0]), T(in[0])};
  };
  Graph graph = Trace(fn, {Ones({2, 2})});
  Optimize(graph);
  Values results = ir::Run(graph, {Ones({2, 2})});
  results[0] += 5;
  EXPECT_EQ(Bits(results[1]), Bits(Full({2, 2}, 2)));
}

TEST(CommonSubexpressionsTest, TwoDrawsAreTwo) {
  Graph graph = Trace(
      [](const Values&) -> Values { return {Rand({5}) - Rand({5})}; }, {});
  MergeCommonSubexpressions(graph);
  RemoveDeadCode(graph);
  EXPECT_EQ(CountOperations(graph), 3);
  EXPECT_NE(Bits(ir::Run(graph, {})[0]), Bits(Zeros({5})));
}

// The same operation on the same tensor, before and after a write.
TEST(CommonSubexpressionsTest, AWriteLiesBetween) {
  EXPECT_EQ(Operations(
                [](const Values& in) -> Values {
                  Tensor x = in[0] * 2;
                  const Tensor view = x[0];
                  const Tensor before = x + 1;
                  view[1] = 7;
                  return {before + (x + 1)};
                },
                {Ones({2, 2})}),
            5);
}

}  // namespace
}  // namespace d2l::ir
