#include <string>
#include <vector>

#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using testing::HasSubstr;

TEST(IrTextTest, PrintsEveryForm) {
  EXPECT_EQ(ToText(EveryKindOfNode()), R"(def twice(%x: float32[2, 3]) {
  %0 = add(%x, %x) : float32[2, 3] @"a \"b\".cc":7
  return %0
}
def main(%x: float32[2, 3]) {
  %0 = weight "constant.0" : float32[2, 3] strides (1, 2)
  %1 = constant [1, -0, inf, 0x7fc00000, 1e+30, 0.1] : float32[2, 3]
  %2 = call twice(%x) : float32[2, 3] @"main.cc":2
  write %2 = add(%2) {second=1.0} @"main.cc":3
  %3 = fused(%x, %2) {
    (%a, %b)
    %0 = add(%a, %b) : float32[2, 3]
    %1 = add(%0) {first=-0.0} : float32[2, 3]
    return %1
  }
  return %3, %1, %2
}
)");
}

TEST(IrTextTest, ATracePrintsAsItRuns) {
  const Tensor w = Full({3}, 2);
  const Graph graph = Trace(
      [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
        return {Relu(x[0] * w)};
      },
      {Ones({2, 3})}, {"scale", {{"scale.weight", w}}});
  EXPECT_EQ(ToText(graph, /*with_lines=*/false),
            R"(def scale(%0: float32[2, 3]) {
  %1 = weight "scale.weight" : float32[3]
  %2 = mul(%0, %1) : float32[2, 3]
  %3 = relu(%2) : float32[2, 3]
  return %3
}
)");
  EXPECT_THAT(ToText(graph), HasSubstr("ir_text_test.cc\":"));
}

TEST(IrTextTest, ATraceKeepsNumbers) {
  const Graph traced = Trace(
      [](const std::vector<Tensor>&) -> std::vector<Tensor> {
        return {FromVector<float>({1, 2}, {2})};
      },
      {});
  EXPECT_THAT(ToText(traced), HasSubstr("constant [1, 2] : float32[2]"));
}

}  // namespace
}  // namespace d2l::ir
