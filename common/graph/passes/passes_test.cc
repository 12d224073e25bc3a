#include "common/graph/passes/passes.h"

#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using Values = std::vector<Tensor>;

// The number of operations that remain after the pass.
int Operations(void (*pass)(Graph&), const TensorFunction& fn,
               const Values& inputs) {
  Graph graph = Trace(fn, inputs);
  const std::vector<std::string> before = Bits(ir::Run(graph, inputs));
  pass(graph);
  EXPECT_NO_THROW(Verify(graph));
  EXPECT_EQ(Bits(ir::Run(graph, inputs)), before);
  RemoveDeadCode(graph);
  EXPECT_EQ(Bits(ir::Run(graph, inputs)), before);
  return CountOperations(graph);
}

TEST(FoldTest, ConstantsAreComputedOnce) {
  EXPECT_EQ(
      Operations(Fold,
                 [](const Values& in) -> Values {
                   const Tensor c = T(Ones({2, 3}) * 5);
                   return {in[0] + Exp(c) + FromVector<float>({1, 2}, {2})};
                 },
                 {Ones({3, 2})}),
      2);
}

// Each call returns its own tensors.
TEST(FoldTest, ResultsAreFoldedToo) {
  Graph graph = Trace(
      [](const Values&) -> Values {
        const Tensor three = FromVector<std::int64_t>({1}, {}) +
                             FromVector<std::int64_t>({2}, {});
        return {three, T(FromVector<double>({1, 2}, {1, 2}) / 3)};
      },
      {});
  const std::vector<std::string> before = Bits(ir::Run(graph, {}));
  Fold(graph);
  RemoveDeadCode(graph);
  EXPECT_EQ(CountOperations(graph), 0) << ToText(graph);
  Captured captured(graph);
  const Values first = captured.Run({});
  EXPECT_EQ(Bits(first), before);
  FillInPlace(first[0], 7);
  EXPECT_EQ(Bits(ir::Run(graph, {})), before);
}

TEST(FoldTest, KeepsWhatMayChangeAndWhatIsLarge) {
  Tensor w = Ones({2});
  EXPECT_EQ(
      Operations(Fold, [&](const Values&) -> Values { return {-w + 1}; }, {}),
      2);
  // The sum's operand is too large, so the sum has no constant operand.
  EXPECT_EQ(Operations(Fold,
                       [](const Values& in) -> Values {
                         return {in[0] + Sum(Ones({2000}))};
                       },
                       {Ones({})}),
            3);
}

TEST(FoldTest, KeepsWhatIsWrittenDrawnOrReturned) {
  EXPECT_EQ(Operations(Fold,
                       [](const Values& in) -> Values {
                         Tensor c = Ones({2});
                         c += in[0];
                         return {c + 1, Zeros({2})};
                       },
                       {Ones({2})}),
            4);
  ManualSeed(5);
  Graph graph = Trace(
      [](const Values&) -> Values { return {Rand({2}) + Ones({2})}; }, {});
  Fold(graph);
  const Tensor once = ir::Run(graph, {})[0];
  EXPECT_NE(Bits(once), Bits(ir::Run(graph, {})[0]));
}

// The late error survives.
TEST(FoldTest, KeepsWhatMayFail) {
  const auto fn = [](const Values&) -> Values {
    return {FloorDivide(Ones({2}, {}, DType::kInt64),
                        Full({2}, 2, {}, DType::kInt64)) *
            2};
  };
  EXPECT_EQ(Operations(Fold, fn, {}), 2);
}

TEST(CommonSubexpressionsTest, EqualOperationsOnEqualValues) {
  EXPECT_EQ(Operations(MergeCommonSubexpressions,
                       [](const Values& in) -> Values {
                         const Tensor a = Exp(T(in[0])) * 2;
                         const Tensor b = Exp(T(in[0])) * 2;
                         return {a + b};
                       },
                       {Ones({2, 3})}),
            3);
}

TEST(CommonSubexpressionsTest, OtherAttributesAndOrderAreOther) {
  EXPECT_EQ(Operations(MergeCommonSubexpressions,
                       [](const Values& in) -> Values {
                         return {(in[0] * 2) - (in[0] * 2.5) + (2 - in[0]) -
                                 (in[0] - 2) +
                                 (in[0] - in[1]) * (in[1] - in[0])};
                       },
                       {Ones({2}), Ones({2})}),
            11);
  // 0.0 and -0.0 are different numbers.
  EXPECT_EQ(Operations(MergeCommonSubexpressions,
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

// One operation on one tensor, before and after a write.
TEST(CommonSubexpressionsTest, AWriteLiesBetween) {
  EXPECT_EQ(Operations(MergeCommonSubexpressions,
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

TEST(DeadCodeTest, LeavesOutWhatNothingUses) {
  const Tensor w = Ones({2});
  EXPECT_EQ(Operations(RemoveDeadCode,
                       [&](const Values& in) -> Values {
                         const Tensor unused = Exp(in[0]) + w;
                         const Tensor also = unused * 2;
                         return {in[0] + 1};
                       },
                       {Ones({2})}),
            1);
}

TEST(DeadCodeTest, KeepsWritesDrawsAndWhatMayFail) {
  EXPECT_EQ(Operations(RemoveDeadCode,
                       [](const Values& in) -> Values {
                         Tensor x = in[0];
                         x += 0;
                         const Tensor drawn = Rand({2});
                         const Tensor fails = FloorDivide(To(x, DType::kInt64),
                                                          To(x, DType::kInt64));
                         const Tensor picked =
                             IndexSelect(x, 0, Zeros({1}, {}, DType::kInt64));
                         return {in[0] * 2};
                       },
                       {Ones({2})}),
            8);
  // Floating-point division cannot fail.
  EXPECT_EQ(Operations(RemoveDeadCode,
                       [](const Values& in) -> Values {
                         const Tensor unused =
                             FloorDivide(in[0], in[0]) + Pow(in[0], 3);
                         return {in[0]};
                       },
                       {Ones({2})}),
            0);
}

}  // namespace
}  // namespace d2l::ir
