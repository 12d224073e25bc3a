
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

// The plan for the values between the operations.
MemoryPlan PlanOf(const Function& function) {
  const Storages storages(function);
  std::vector<bool> wanted(function.values.size(), false);
  for (const Node& node : function.nodes) {
    for (const ValueId value : node.outputs) {
      wanted[value] = storages.root[value] == value &&
                      !storages.escapes(value) && !storages.external(value);
    }
  }
  return PlanMemory(function, storages, wanted);
}

TEST(MemoryPlanTest, AChainNeedsOneBlock) {
  const Graph graph = Trace(
      [](const Values& in) -> Values {
        return {Sum(Relu(Tanh(in[0] * 2) + 1))};
      },
      {Ones({100})});
  const MemoryPlan plan = PlanOf(graph.main());
  EXPECT_EQ(plan.arena_bytes, 448);  // 400 bytes, to a multiple of 64
  EXPECT_EQ(plan.in_place, 3);
  // The interpreter holds an operand and a result at the same time.
  EXPECT_EQ(PeakBytes(graph), 800);
}

TEST(MemoryPlanTest, ProductsAndTransposesAreNotOverwritten) {
  const Graph graph = Trace(
      [](const Values& in) -> Values {
        const Tensor a = in[0] * 2;
        const Tensor b = MatMul(a, a);
        const Tensor c = b + T(b);  // b is read in two orders
        return {Sum(c)};
      },
      {Ones({4, 4})});
  const MemoryPlan plan = PlanOf(graph.main());
  EXPECT_EQ(plan.in_place, 0);
  EXPECT_EQ(plan.arena_bytes, 2 * 64);
}

TEST(MemoryPlanTest, AViewKeepsItsMemory) {
  const Graph graph = Trace(
      [](const Values& in) -> Values {
        const Tensor a = in[0] * 2;
        const Tensor first = a[0];
        const Tensor b = a + 1;
        const Tensor c = b * 3;
        return {Sum(c), Sum(first)};
      },
      {Ones({4, 4})});
  const MemoryPlan plan = PlanOf(graph.main());
  EXPECT_EQ(plan.in_place, 1);  // c over b
  EXPECT_EQ(plan.arena_bytes, 2 * 64);
}

// A region with two results, the first of which is written before the last read
// of the argument.
TEST(MemoryPlanTest, AFusedRegionReadsBeforeItWrites) {
  const auto fn = [](bool last) {
    return [last](const Values& in) -> Values {
      const Tensor x = MatMul(in[0], in[0]);
      const Tensor a = x * 2;
      const Tensor b = last ? a + 1 : a + x;
      return {MatMul(a, b)};
    };
  };
  for (const bool last : {false, true}) {
    Graph graph = Trace(fn(last), {Ones({4, 4})});
    Fuse(graph);
    ASSERT_EQ(CountOperations(graph), 3);
    const MemoryPlan plan = PlanOf(graph.main());
    // The result that is made after the last read of x overwrites x.
    const Node& fused = graph.main().nodes[1];
    ASSERT_EQ(fused.outputs.size(), 2u);
    const std::int64_t x = plan.offset[fused.inputs[0]];
    EXPECT_EQ(plan.offset[fused.outputs[last ? 0 : 1]], x);
    EXPECT_NE(plan.offset[fused.outputs[last ? 1 : 0]], x);
  }
}

// Values that are alive at the same time do not overlap.
TEST(MemoryPlanTest, RandomPrograms) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const RandomProgram program(seed, Device());
    Graph graph = Trace(program.function(), program.Arguments(0));
    if (seed % 2 == 0) Optimize(graph);
    const Function& f = graph.main();
    const Storages storages(f);
    const MemoryPlan plan = PlanOf(f);
    const std::vector<int> last = LastUses(f, storages);
    std::vector<int> made(f.values.size(), -1);
    for (std::size_t i = 0; i < f.nodes.size(); ++i) {
      for (const ValueId value : f.nodes[i].outputs) {
        made[value] = static_cast<int>(i);
      }
    }
    for (std::size_t a = 0; a < f.values.size(); ++a) {
      if (plan.offset[a] < 0) continue;
      const std::int64_t a_end =
          plan.offset[a] + BytesOf(f.type(static_cast<int>(a)));
      EXPECT_LE(a_end, plan.arena_bytes);
      for (std::size_t b = 0; b < a; ++b) {
        // An operation may overwrite its operand.
        if (plan.offset[b] < 0 || made[a] >= last[b] || made[b] >= last[a]) {
          continue;
        }
        const std::int64_t b_end =
            plan.offset[b] + BytesOf(f.type(static_cast<int>(b)));
        EXPECT_TRUE(a_end <= plan.offset[b] || b_end <= plan.offset[a])
            << "seed " << seed << ", values " << a << " and " << b << "\n"
            << ToText(graph, false);
      }
    }
  }
}

TEST(OptimizeTest, ReportsEachPass) {
  Graph graph = Trace(
      [](const Values& in) -> Values {
        return {Relu(in[0] * 1 + Ones({4}) * 2)};
      },
      {Ones({4})});
  std::vector<std::string> seen;
  const std::vector<PassReport> reports =
      Optimize(graph, [&](const std::string& pass, const Graph& g) {
        EXPECT_NO_THROW(Verify(g));
        seen.push_back(pass);
      });
  ASSERT_EQ(reports.size(), seen.size() + 1);
  std::vector<int> operations;
  for (const PassReport& report : reports) {
    operations.push_back(report.operations);
  }
  EXPECT_EQ(operations, (std::vector<int>{5, 5, 3, 3, 3, 2, 1, 1}));
  EXPECT_EQ(reports[6].peak_bytes, 16);
  EXPECT_EQ(reports[7].peak_bytes, 64);
  EXPECT_EQ(reports[0].ToString().substr(0, 47),
            "as it came: 5 operations, 48 bytes at the peak,");
}

}  // namespace
}  // namespace d2l::ir
