#include <ostream>
#include <string>
#include <vector>

#include "common/graph/ir.h"
#include "common/graph/ir_testing.h"
#include "common/graph/passes/passes.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {
namespace {

using Values = std::vector<Tensor>;

// The number of fused regions and of operations outside of them.
struct Counts {
  int fused;
  int others;
};
bool operator==(const Counts& a, const Counts& b) {
  return a.fused == b.fused && a.others == b.others;
}
std::ostream& operator<<(std::ostream& out, const Counts& c) {
  return out << c.fused << " fused, " << c.others << " others";
}

Counts Fused(const TensorFunction& fn, const Values& inputs) {
  Graph graph = Trace(fn, inputs);
  const std::vector<std::string> before = Bits(ir::Run(graph, inputs));
  Fuse(graph);
  EXPECT_NO_THROW(Verify(graph));
  EXPECT_EQ(Bits(ir::Run(graph, inputs)), before) << ToText(graph);
  Counts counts = {0, CountOperations(graph)};
  for (const Node& node : graph.main().nodes) {
    counts.fused += node.kind == NodeKind::kFused;
  }
  counts.others -= counts.fused;
  return counts;
}

TEST(FuseTest, AChainIsOneRegion) {
  Graph graph = Trace(
      [](const Values& in) -> Values { return {Relu(in[0] * in[1] + 2) > 1}; },
      {Ones({2, 3}), Ones({3})});
  Fuse(graph);
  EXPECT_EQ(ToText(graph, false),
            R"(def main(%0: float32[2, 3], %1: float32[3]) {
  %2 = fused(%0, %1) {
    (%0, %1)
    %2 = mul(%0, %1) : float32[2, 3]
    %3 = add(%2) {second=2} : float32[2, 3]
    %4 = relu(%3) : float32[2, 3]
    %5 = gt(%4) {second=1} : uint8[2, 3]
    return %5
  }
  return %2
}
)");
}

TEST(FuseTest, WhatGoesTogether) {
  const Values inputs = {Ones({2, 3}), Ones({3})};
  // Two chains that meet; all results are returned.
  EXPECT_EQ(Fused(
                [](const Values& in) -> Values {
                  const Tensor a = in[0] * 2;
                  const Tensor b = in[0] + 1;
                  return {a, b, a - b};
                },
                inputs),
            (Counts{1, 0}));
  // The inputs of a reduction, and operations on its result.
  EXPECT_EQ(Fused(
                [](const Values& in) -> Values {
                  const Tensor m = Max(Relu(in[0]) * 2, {0}, true);
                  return {Exp(in[0] - m) * 2 + 1};
                },
                inputs),
            (Counts{2, 1}));
  // A type other than the chain's.
  EXPECT_EQ(
      Fused(
          [](const Values& in) -> Values {
            return {Where(in[0] > 0,
                          To(To(in[0], DType::kUInt8) * 3, DType::kFloat32),
                          in[1])};
          },
          inputs),
      (Counts{1, 0}));
}

TEST(FuseTest, WhatDoesNot) {
  const Values inputs = {Ones({2, 3}), Ones({3})};
  // One operation alone; another shape.
  EXPECT_EQ(
      Fused([](const Values& in) -> Values { return {(in[1] * 2) + in[0]}; },
            inputs),
      (Counts{0, 2}));
  // A matrix product in between: its operand is needed earlier.
  EXPECT_EQ(Fused(
                [](const Values& in) -> Values {
                  const Tensor a = in[0] * 2;
                  const Tensor b = MatMul(a, T(a));
                  return {a + Sum(b)};
                },
                inputs),
            (Counts{0, 4}));
  // Columns, and operands that are not contiguous.
  EXPECT_EQ(Fused(
                [](const Values& in) -> Values {
                  return {T(in[0]) * 2 - in[1][{Range{0, 2}}]};
                },
                inputs),
            (Counts{0, 2}));
  // An operation that may fail late.
  EXPECT_EQ(Fused(
                [](const Values& in) -> Values {
                  const Tensor n = To(in[0], DType::kInt64);
                  return {FloorDivide(n, n)};
                },
                inputs),
            (Counts{0, 2}));
}

TEST(FuseTest, WritesStayWhereTheyAre) {
  EXPECT_EQ(Fused(
                [](const Values& in) -> Values {
                  Tensor a = in[0] * 2;
                  const Tensor row = a[0];
                  const Tensor b = row + 1;
                  a += 5;
                  const Tensor c = row + 1;
                  return {b * c, a};
                },
                {Ones({2, 3})}),
            (Counts{0, 5}));
}

TEST(FuseTest, TheLineOfAnOperationStays) {
  Graph graph =
      Trace([](const Values& in) -> Values { return {Relu(in[0] * 2)}; },
            {Ones({2, 3})});
  const SourceLocation first = graph.main().nodes[0].op.requested_at;
  Fuse(graph);
  const Node& fused = graph.main().nodes[0];
  EXPECT_EQ(fused.body->nodes[0].op.requested_at, first);
  EXPECT_TRUE(fused.op.requested_at.known());
}

}  // namespace
}  // namespace d2l::ir
