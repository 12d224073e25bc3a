#include <string>
#include <vector>

#include "common/graph/interpreter.h"
#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/ir_text.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using Values = std::vector<Tensor>;

// The program's own text, after the pass.
std::string Inlined(const std::string& text) {
  Graph graph = ParseText(text).value();
  Inline(graph);
  EXPECT_TRUE(Verify(graph).ok()) << Verify(graph);
  return ToText(graph);
}

// (1+2) + (3+4), as three calls.
TEST(InlineTest, PutsBodiesWhereTheyAreCalled) {
  EXPECT_EQ(Inlined(R"(d2l.program 1
def sum(%a: float32[], %b: float32[]) {
  %w = weight "w" : float32[]
  %0 = add(%a, %b) : float32[] @"sum.d2l":2
  %1 = add(%0, %w) : float32[] @"sum.d2l":3 by "caller.d2l":9
  return %1
}
def main(%a: float32[]) {
  %one = constant [1] : float32[]
  %p = call sum(%a, %one) : float32[] @"main.d2l":1
  %q = call sum(%p, %p) : float32[] @"main.d2l":2
  return %q, %a
}
run main
)"),
            R"(d2l.program 1
def main(%a: float32[]) {
  %one = constant [1] : float32[]
  %0 = weight "w" : float32[]
  %1 = add(%a, %one) : float32[] @"sum.d2l":2 by "main.d2l":1
  %p = add(%1, %0) : float32[] @"sum.d2l":3 by "caller.d2l":9
  %2 = add(%p, %p) : float32[] @"sum.d2l":2 by "main.d2l":2
  %q = add(%2, %0) : float32[] @"sum.d2l":3 by "caller.d2l":9
  return %q, %a
}
run main
)");
}

TEST(InlineTest, CallsInCallsAndWritesToArguments) {
  const std::string text = R"(d2l.program 1
def increment(%x: float32[2]) {
  write %x = add(%x) {second=1}
  return %x
}
def twice(%x: float32[2]) {
  %a = call increment(%x) : float32[2]
  %b = call increment(%a) : float32[2]
  return
}
def main(%x: float32[2]) {
  %y = mul(%x) {second=2} : float32[2]
  call twice(%y)
  %z = relu(%y) : float32[2]
  return %y, %z
}
run main
)";
  Graph graph = ParseText(text).value();
  const std::vector<std::string> before = Bits(ir::Run(graph, {Ones({2})}));
  EXPECT_EQ(before[1], Bits(Full({2}, 4)));
  // What a call may write is left as it is.
  Simplify(graph);
  MergeCommonSubexpressions(graph);
  RemoveDeadCode(graph);
  Fuse(graph);
  EXPECT_EQ(Bits(ir::Run(graph, {Ones({2})})), before);
  Inline(graph);
  ASSERT_TRUE(Verify(graph).ok()) << Verify(graph);
  EXPECT_EQ(graph.functions.size(), 1u);
  EXPECT_EQ(Bits(ir::Run(graph, {Ones({2})})), before);
}

}  // namespace
}  // namespace d2l::ir
