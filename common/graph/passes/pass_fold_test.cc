#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/captured.h"
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
  Fold(graph);
  EXPECT_TRUE(Verify(graph).ok()) << Verify(graph);
  EXPECT_EQ(Bits(ir::Run(graph, inputs)), before);
  RemoveDeadCode(graph);
  EXPECT_EQ(Bits(ir::Run(graph, inputs)), before);
  return CountOperations(graph);
}

TEST(FoldTest, ConstantsAreComputedOnce) {
  EXPECT_EQ(Operations(
                [](const Values& in) -> Values {
                  const Tensor c = T(Ones({2, 3}) * 5);
                  return {in[0] + Exp(c) + FromVector<float>({1, 2}, {2})};
                },
                {Ones({3, 2})}),
            2);
}

// Each call returns numbers of its own.
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
  EXPECT_EQ(Operations([&](const Values&) -> Values { return {-w + 1}; }, {}),
            2);
  // Too large; the result of the reduction is not, but it has no constant.
  EXPECT_EQ(Operations([](const Values& in)
                           -> Values { return {in[0] + Sum(Ones({2000}))}; },
                       {Ones({})}),
            3);
}

TEST(FoldTest, KeepsWhatIsWrittenDrawnOrReturned) {
  EXPECT_EQ(Operations(
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
  EXPECT_EQ(Operations(fn, {}), 2);
}

}  // namespace
}  // namespace d2l::ir
