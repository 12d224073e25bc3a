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
  RemoveDeadCode(graph);
  EXPECT_TRUE(Verify(graph).ok()) << Verify(graph);
  EXPECT_EQ(Bits(ir::Run(graph, inputs)), before);
  return CountOperations(graph);
}

TEST(DeadCodeTest, LeavesOutWhatNothingUses) {
  const Tensor w = Ones({2});
  EXPECT_EQ(Operations(
                [&](const Values& in) -> Values {
                  const Tensor unused = Exp(in[0]) + w;
                  const Tensor also = unused * 2;
                  return {in[0] + 1};
                },
                {Ones({2})}),
            1);
}

TEST(DeadCodeTest, KeepsWritesDrawsAndWhatMayFail) {
  EXPECT_EQ(Operations(
                [](const Values& in) -> Values {
                  Tensor x = in[0];
                  x += 0;
                  const Tensor drawn = Rand({2});
                  const Tensor fails =
                      FloorDivide(To(x, DType::kInt64), To(x, DType::kInt64));
                  const Tensor picked =
                      IndexSelect(x, 0, Zeros({1}, {}, DType::kInt64));
                  return {in[0] * 2};
                },
                {Ones({2})}),
            8);
  // Of floating-point numbers, nothing fails.
  EXPECT_EQ(Operations(
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
