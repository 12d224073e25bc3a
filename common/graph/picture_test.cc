#include "common/graph/picture.h"

#include <string>
#include <vector>

#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::ElementsAre;

std::vector<std::string> NamesOf(const ProgramGraph& graph) {
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes()) {
    names.push_back(node.op < 0 ? "outside"
                                : graph.ops()[node.op].primitive->name());
  }
  return names;
}

TEST(PictureTest, NodesAndDependencies) {
  const Tensor w = Ones({2, 2});
  Graph graph = Trace(
      [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
        Tensor y = MatMul(in[0], T(w));
        y += 1;
        return {Relu(Ones({2, 2}) - in[0]) * 2, y};
      },
      {Ones({2, 2})});
  const ProgramGraph before = ToProgramGraph(graph.main());
  EXPECT_THAT(NamesOf(before),
              ElementsAre("outside", "transpose", "outside", "matmul", "add",
                          "ones", "sub", "relu", "mul"));
  EXPECT_TRUE(before.ops()[2].in_place);
  EXPECT_TRUE(before.ops()[0].view);
  EXPECT_TRUE(before.ops()[0].line.known());
  Optimize(graph);
  EXPECT_THAT(NamesOf(ToProgramGraph(graph.main())),
              ElementsAre("outside", "transpose", "outside", "matmul", "add",
                          "constant", "fused sub relu mul"));
}

}  // namespace
}  // namespace d2l::ir
