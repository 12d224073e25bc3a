#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/graph/program_graph.h"
#include "common/graph/program_testing.h"
#include "common/graph/trace.h"
#include "common/ops/nn/functional.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using Edges = std::set<std::pair<int, int>>;

const Device kCpu(DeviceType::kCpu, 0);

Edges EdgesOf(const ProgramGraph& graph) {
  Edges edges;
  for (const GraphEdge& edge : graph.edges()) {
    EXPECT_LT(edge.from, edge.to);
    EXPECT_TRUE(edges.insert({edge.from, edge.to}).second) << "twice";
  }
  return edges;
}

EdgeKind KindOf(const ProgramGraph& graph, int from, int to) {
  for (const GraphEdge& edge : graph.edges()) {
    if (edge.from == from && edge.to == to) return edge.kind;
  }
  ADD_FAILURE() << "no edge from " << from << " to " << to;
  return EdgeKind::kData;
}

TEST(ProgramGraph, OfThreeStatements) {
  const Tensor x = Ones({1, 2}, kCpu);
  const Tensor y = Ones({1, 2}, kCpu);
  Tracer tracer;
  {
    const ScopedOpListener listen(&tracer);
    const Tensor z = x * y + 2;
  }
  const ProgramGraph graph = tracer.Graph();
  ASSERT_EQ(graph.nodes().size(), 4u);
  EXPECT_EQ(graph.nodes()[0].op, -1);
  EXPECT_EQ(graph.nodes()[1].value.id, y.id());
  EXPECT_EQ(EdgesOf(graph), (Edges{{0, 2}, {1, 2}, {2, 3}}));
  EXPECT_THAT(graph.levels(), ElementsAre(0, 0, 1, 2));
  EXPECT_EQ(graph.depth(), 3);
  EXPECT_EQ(graph.width(), 1);
  EXPECT_EQ(graph.critical_path_seconds(), 0);
}

TEST(ProgramGraph, WritesWaitForReads) {
  FakeProgram p;
  const int x = p.Op("ones", {});  // 0
  p.Op("relu", {x});               // 1
  p.Op("exp", {x});                // 2
  p.InPlace("add", {x}, x);        // 3
  p.InPlace("fill", {}, x);        // 4
  p.Op("neg", {x});                // 5
  const ProgramGraph graph = p.Graph();
  EXPECT_EQ(EdgesOf(graph),
            (Edges{{0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}, {3, 4}, {4, 5}}));
  EXPECT_EQ(KindOf(graph, 0, 3), EdgeKind::kData);
  EXPECT_EQ(KindOf(graph, 1, 3), EdgeKind::kWriteAfterRead);
  EXPECT_EQ(KindOf(graph, 3, 4), EdgeKind::kWriteAfterWrite);
  EXPECT_EQ(KindOf(graph, 4, 5), EdgeKind::kData);
}

TEST(ProgramGraph, ViewsShareMemory) {
  FakeProgram p;
  const int x = p.Op("ones", {});  // 0
  const int v = p.View("t", x);    // 1
  p.InPlace("add", {x}, x);        // 2: waits for no view
  p.Op("neg", {v});                // 3: sees what 2 wrote
  p.InPlace("mul", {v}, v);        // 4: must wait for 3
  p.Op("exp", {x});                // 5
  const ProgramGraph graph = p.Graph();
  EXPECT_EQ(
      EdgesOf(graph),
      (Edges{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {1, 4}, {2, 4}, {3, 4}, {4, 5}}));
  EXPECT_EQ(KindOf(graph, 3, 4), EdgeKind::kWriteAfterRead);
}

TEST(ProgramGraph, CriticalPathIsTheLongestInTime) {
  FakeProgram p;
  const int a = p.Op("a", {});
  const int b = p.Op("b", {a});
  const int c = p.Op("c", {b});
  const int d = p.Op("d", {a});
  p.Op("e", {c, d});
  p.ops[3].end = p.ops[3].begin + 2000;  // d
  const ProgramGraph graph = p.Graph();
  EXPECT_THAT(graph.critical_path(), ElementsAre(0, 3, 4));
  EXPECT_DOUBLE_EQ(graph.critical_path_seconds(), 3000e-9);
  EXPECT_DOUBLE_EQ(graph.total_seconds(), 4000e-9);
  EXPECT_THAT(graph.levels(), ElementsAre(0, 1, 2, 1, 3));
  EXPECT_EQ(graph.width(), 2);
}

TEST(ProgramGraph, AnOperationMayHaveSeveralOutputs) {
  FakeProgram p;
  const int x = p.Outside();
  const int first = p.Ops("split", {x}, 2);  // node 1
  p.Op("relu", {first});                     // 2
  p.Op("exp", {first + 1});                  // 3
  p.InPlace("fill", {}, first + 1);          // 4
  EXPECT_EQ(EdgesOf(p.Graph()), (Edges{{0, 1}, {1, 2}, {1, 3}, {3, 4}}));
}

std::vector<std::string> NamesOf(const ProgramGraph& graph) {
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes()) {
    names.push_back(node.op < 0 ? "outside" : graph.ops()[node.op].name);
  }
  return names;
}

TEST(ProgramGraph, OfAFunction) {
  const Tensor w = Ones({2, 2});
  ir::Graph graph = ir::Trace(
      [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
        Tensor y = MatMul(in[0], T(w));
        y += 1;
        return {Relu(Ones({2, 2}) - in[0]) * 2, y};
      },
      {Ones({2, 2})});
  const ProgramGraph before = ir::ToProgramGraph(graph.main());
  EXPECT_THAT(NamesOf(before),
              ElementsAre("outside", "transpose", "outside", "matmul", "add",
                          "ones", "sub", "relu", "mul"));
  EXPECT_TRUE(before.ops()[2].in_place);
  EXPECT_TRUE(before.ops()[0].view);
  EXPECT_TRUE(before.ops()[0].line.known());
  ir::Optimize(graph);
  EXPECT_THAT(NamesOf(ir::ToProgramGraph(graph.main())),
              ElementsAre("outside", "transpose", "outside", "matmul", "add",
                          "constant", "fused sub relu mul"));
}

TEST(ProgramGraph, OfNothing) {
  const ProgramGraph graph({});
  EXPECT_EQ(graph.depth(), 0);
  EXPECT_EQ(graph.width(), 0);
  EXPECT_TRUE(graph.nodes().empty());
}

// Whether two operations meet in some memory.
bool Touch(const std::vector<ValueRecord>& a,
           const std::vector<ValueRecord>& b) {
  for (const ValueRecord& x : a) {
    for (const ValueRecord& y : b) {
      if (x.storage == y.storage) return true;
    }
  }
  return false;
}

// Whether operation j must come after i, found by comparing all pairs.
Edges AllDependencies(const std::vector<GraphOp>& ops) {
  const int count = static_cast<int>(ops.size());
  std::vector<std::vector<bool>> after(count, std::vector<bool>(count));
  for (int j = 0; j < count; ++j) {
    const GraphOp& b = ops[j];
    for (int i = 0; i < j; ++i) {
      const GraphOp& a = ops[i];
      if (!a.view && (Touch(a.outputs, b.inputs) ||
                      (!b.view && Touch(a.outputs, b.outputs)) ||
                      (!b.view && Touch(a.inputs, b.outputs)))) {
        after[i][j] = true;
      }
      for (const ValueRecord& input : b.inputs) {
        if (a.view && input.id == a.outputs[0].id) after[i][j] = true;
      }
    }
  }
  Edges closure;
  for (int k = 0; k < count; ++k) {
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < count; ++j) {
        if (after[i][k] && after[k][j]) after[i][j] = true;
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) {
      if (after[i][j]) closure.insert({i, j});
    }
  }
  return closure;
}

// All pairs of operations that the graph orders.
Edges Closure(const ProgramGraph& graph) {
  const int count = static_cast<int>(graph.nodes().size());
  std::vector<std::set<int>> before(count);
  Edges closure;
  for (const GraphEdge& edge : graph.edges()) {
    before[edge.to].insert(edge.from);
    before[edge.to].insert(before[edge.from].begin(), before[edge.from].end());
  }
  for (int node = 0; node < count; ++node) {
    for (const int from : before[node]) {
      if (graph.nodes()[from].op < 0) continue;
      closure.insert({graph.nodes()[from].op, graph.nodes()[node].op});
    }
  }
  return closure;
}

TEST(ProgramGraph, OrdersWhatMustBeOrderedAndNothingElse) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    FakeProgram p = RandomProgram(seed, 24);
    const ProgramGraph graph = p.Graph();
    EXPECT_EQ(Closure(graph), AllDependencies(p.ops)) << seed;
  }
}

TEST(Tracer, KeepsWhatThisThreadRequests) {
  const Tensor x = Ones({2, 3}, kCpu);
  Tensor z;
  Tracer tracer;
  {
    const ScopedOpListener listen(&tracer);
    z = x * x + 2;
    z += x;
    T(z);
    EXPECT_THROW(x + Ones({4}, kCpu), std::invalid_argument);
  }
  const Tensor unheard = x + 1;
  const ProgramGraph graph = tracer.Graph();
  const std::vector<GraphOp>& ops = graph.ops();
  ASSERT_EQ(ops.size(), 5u);
  EXPECT_THAT(graph.streams(), ElementsAre("cpu:0"));

  EXPECT_EQ(ops[0].name, "mul");
  ASSERT_EQ(ops[0].inputs.size(), 2u);
  EXPECT_EQ(ops[0].inputs[1].id, x.id());
  EXPECT_EQ(ops[0].inputs[1].storage, x.storage()->id());
  ASSERT_EQ(ops[0].outputs.size(), 1u);
  EXPECT_EQ(ops[0].outputs[0].shape, (Shape{2, 3}));
  EXPECT_EQ(ops[0].stream, 0);
  EXPECT_FALSE(ops[0].in_place);
  EXPECT_STREQ(ops[0].line.file(), __FILE__);
  EXPECT_EQ(ops[0].seconds(), 0);  // nothing measured times

  EXPECT_THAT(ops[1].primitive->attributes(),
              ElementsAre(Pair(testing::_, "2")));
  EXPECT_EQ(ops[1].number, ops[0].number + 1);
  EXPECT_TRUE(ops[2].in_place);
  EXPECT_EQ(ops[2].outputs[0].id, z.id());
  EXPECT_EQ(ops[2].outputs[0].version, ops[1].outputs[0].version + 1);
  EXPECT_TRUE(ops[3].view);
  EXPECT_EQ(ops[3].stream, -1);
  EXPECT_EQ(ops[4].name, "ones");  // not the refused sum
}

// The running values of batch normalisation.
TEST(Tracer, KnowsWhichOperandsAreWritten) {
  const Tensor x = Ones({3, 2}, kCpu), one = Ones({2}, kCpu);
  const Tensor mean = Zeros({2}, kCpu), variance = Ones({2}, kCpu);
  const auto run = [&](const std::vector<Tensor>&) -> std::vector<Tensor> {
    const Tensor before = Relu(mean);
    BatchNorm(x, one, one, mean, variance, true);
    return {before, Relu(variance)};
  };
  Tracer tracer;
  {
    const ScopedOpListener listen(&tracer);
    run({});
  }
  const ir::Graph traced = ir::Trace(run, {});
  for (const ProgramGraph& graph :
       {tracer.Graph(), ir::ToProgramGraph(traced.main())}) {
    const auto node = [&](const std::string& name, int which) {
      for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
        if (NamesOf(graph)[i] == name && which-- == 0)
          return static_cast<int>(i);
      }
      return -1;
    };
    const int statistics = node("batch_norm_stats", 0);
    EXPECT_EQ(KindOf(graph, node("relu", 0), statistics),
              EdgeKind::kWriteAfterRead);
    EXPECT_EQ(KindOf(graph, statistics, node("relu", 1)), EdgeKind::kData);
    for (const GraphOp& op : graph.ops()) {
      EXPECT_EQ(op.outputs.size(), op.name == "batch_norm_stats" ? 3u : 1u);
    }
  }
}

TEST(Tracer, NamesTheUsersLineAndEachStream) {
  const Tensor x = Ones({2}, kCpu);
  Tracer tracer;
  {
    const ScopedOpListener listen(&tracer);
    const RequestedBy by(SourceLocation("user.cc", 7));
    Relu(To(Exp(x), Device(DeviceType::kCpu, 1)));
  }
  // The second is the receiver's copy stream.
  EXPECT_THAT(tracer.streams(),
              ElementsAre("cpu:0", testing::StartsWith("cpu:1/"), "cpu:1"));
  for (const GraphOp& op : tracer.ops()) EXPECT_EQ(op.line.line(), 7);
}

}  // namespace
}  // namespace d2l
