#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/drawing/graph_drawing.h"
#include "common/drawing/graph_layers.h"
#include "common/drawing/graph_layout.h"
#include "common/graph/program_graph.h"
#include "common/lesson/recorder.h"
#include "common/lesson/recording_testing.h"
#include "common/ops/ops.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Edges = std::set<std::pair<int, int>>;

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

std::size_t LongestLine(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, line.size());
  }
  return longest;
}

TEST(ProgramGraph, OfThreeStatements) {
  const Device cpu(DeviceType::kCpu, 0);
  const Tensor x = Ones({1, 2}, cpu);
  const Tensor y = Ones({1, 2}, cpu);
  const ProgramGraph graph(Record([&] { const Tensor z = x * y + 2; }));
  ASSERT_EQ(graph.nodes().size(), 4u);
  EXPECT_EQ(NodeLabel(graph, 0), "input");
  EXPECT_EQ(graph.nodes()[1].value.id, y.id());
  EXPECT_EQ(NodeName(graph, 2), "mul");
  EXPECT_THAT(NodeLabel(graph, 3), ::testing::MatchesRegex("add .*=2"));
  EXPECT_EQ(EdgesOf(graph), (Edges{{0, 2}, {1, 2}, {2, 3}}));
  EXPECT_THAT(graph.levels(), ElementsAre(0, 0, 1, 2));
  EXPECT_EQ(graph.depth(), 3);
  EXPECT_EQ(graph.width(), 1);
  EXPECT_GT(graph.critical_path_seconds(), 0);
  EXPECT_THAT(GraphToText(graph), HasSubstr("graph_test.cc:"));
}

TEST(ProgramGraph, WritesWaitForReads) {
  FakeProgram p;
  const int x = p.Op("ones", {});  // 0
  p.Op("relu", {x});               // 1
  p.Op("exp", {x});                // 2
  p.InPlace("add", {x}, x);        // 3
  p.InPlace("fill", {}, x);        // 4
  p.Op("neg", {x});                // 5
  const ProgramGraph graph(p.recording());
  EXPECT_EQ(EdgesOf(graph),
            (Edges{{0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}, {3, 4}, {4, 5}}));
  EXPECT_EQ(KindOf(graph, 0, 3), EdgeKind::kData);
  EXPECT_EQ(KindOf(graph, 1, 3), EdgeKind::kWriteAfterRead);
  EXPECT_EQ(KindOf(graph, 3, 4), EdgeKind::kWriteAfterWrite);
  EXPECT_EQ(KindOf(graph, 4, 5), EdgeKind::kData);
  EXPECT_EQ(NodeLabel(graph, 3), "add_");
  EXPECT_THAT(GraphToText(graph), HasSubstr("Dotted lines"));
}

TEST(ProgramGraph, ViewsShareMemory) {
  FakeProgram p;
  const int x = p.Op("ones", {});  // 0
  const int v = p.View("t", x);    // 1
  p.InPlace("add", {x}, x);        // 2: waits for no view
  p.Op("neg", {v});                // 3: sees what 2 wrote
  p.InPlace("mul", {v}, v);        // 4: must wait for 3
  p.Op("exp", {x});                // 5
  const ProgramGraph graph(p.recording());
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
  p.recording().ops[3].end = p.recording().ops[3].begin + 2000;  // d
  const ProgramGraph graph(p.recording());
  EXPECT_THAT(graph.critical_path(), ElementsAre(0, 3, 4));
  EXPECT_DOUBLE_EQ(graph.critical_path_seconds(), 3000e-9);
  EXPECT_DOUBLE_EQ(graph.total_seconds(), 4000e-9);
  EXPECT_THAT(graph.levels(), ElementsAre(0, 1, 2, 1, 3));
  EXPECT_EQ(graph.width(), 2);
}

TEST(ProgramGraph, OfNothing) {
  const ProgramGraph graph{Recording()};
  EXPECT_EQ(graph.depth(), 0);
  EXPECT_EQ(GraphToText(graph), "No operation was recorded.\n");
  EXPECT_THAT(GraphToSvg(graph, "t"), HasSubstr("No operation"));
}

// Some program, with views and operations in place.
FakeProgram RandomProgram(unsigned seed, int operations) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  FakeProgram p;
  std::vector<int> values = {p.Outside(), p.Outside()};
  const auto any = [&] {
    return values[below(static_cast<int>(values.size()))];
  };
  for (int i = 0; i < operations; ++i) {
    switch (below(6)) {
      case 0:
        values.push_back(p.View("view", any()));
        break;
      case 1:
        p.InPlace("write", {any()}, any());
        break;
      case 2:
        p.InPlace("fill", {}, any());
        break;
      default:
        values.push_back(p.Op("op", {any(), any(), any()}));
    }
  }
  return p;
}

// By looking at all pairs: must operation j come after i?
Edges AllDependencies(const Recording& run) {
  const int count = static_cast<int>(run.ops.size());
  std::vector<std::vector<bool>> after(count, std::vector<bool>(count));
  for (int j = 0; j < count; ++j) {
    const RecordedOp& b = run.ops[j];
    for (int i = 0; i < j; ++i) {
      const RecordedOp& a = run.ops[i];
      const bool a_writes = !a.view;
      const bool b_writes = !b.view && a.output.storage == b.output.storage;
      for (const ValueRecord& input : b.inputs) {
        if (a_writes && input.storage == a.output.storage) after[i][j] = true;
        if (a.view && input.id == a.output.id) after[i][j] = true;
      }
      if (b_writes && a_writes) after[i][j] = true;
      for (const ValueRecord& input : a.inputs) {
        if (!a.view && !b.view && input.storage == b.output.storage) {
          after[i][j] = true;
        }
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

// Of the operations that a graph orders.
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
    const ProgramGraph graph(p.recording());
    EXPECT_EQ(Closure(graph), AllDependencies(p.recording())) << seed;
  }
}

// Reads a drawing as a person does: follows each wire from the node it leaves,
// through corners and over crossings, to the nodes it reaches.
class Reader {
 public:
  explicit Reader(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) rows_.push_back(line);
  }

  Edges Read() {
    for (int y = 0; y < static_cast<int>(rows_.size()); ++y) {
      for (int x = 0; x < static_cast<int>(rows_[y].size()); ++x) {
        const int node = NodeAt(x, y);
        if (node < 0) continue;
        node_ = node;
        visited_.clear();
        const char below = At(x, y + 1);
        if (below == '|' || below == ':' || below == 'v') Down(x, y + 1);
      }
    }
    return edges_;
  }

 private:
  char At(int x, int y) const {
    if (x < 0 || y < 0 || y >= static_cast<int>(rows_.size())) return ' ';
    return x < static_cast<int>(rows_[y].size()) ? rows_[y][x] : ' ';
  }
  // The number in the box that covers the place; -1 if there is none.
  int NodeAt(int x, int y) const {
    for (int i = x; i >= 0; --i) {
      if (At(i, y) == ']' && i < x) return -1;
      if (At(i, y) != '[') continue;
      return std::atoi(rows_[y].substr(i + 1).c_str()) - 1;
    }
    return -1;
  }
  static bool Vertical(char c) { return c == '|' || c == ':'; }
  void Down(int x, int y) {
    while (Vertical(At(x, y))) ++y;
    if (At(x, y) == 'v') {
      edges_.insert({node_, NodeAt(x, y + 1)});
    } else if (At(x, y) == '+') {
      Corner(x, y);
    } else {
      ADD_FAILURE() << "a wire of " << node_ + 1 << " ends in nothing";
    }
  }
  void Corner(int x, int y) {
    if (!visited_.insert({x, y}).second) return;
    if (Vertical(At(x, y + 1)) || At(x, y + 1) == 'v') Down(x, y + 1);
    for (const int step : {-1, 1}) {
      int i = x + step;
      while (Vertical(At(i, y)) || At(i, y) == '-' || At(i, y) == '.')
        i += step;
      if (At(i, y) == '+') Corner(i, y);
    }
  }

  std::vector<std::string> rows_;
  int node_ = -1;
  std::set<std::pair<int, int>> visited_;
  Edges edges_;
};

TEST(DrawLayers, ShowsExactlyTheEdges) {
  int drawn = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    FakeProgram p = RandomProgram(seed, 3 + static_cast<int>(seed % 20));
    const ProgramGraph graph(p.recording());
    std::vector<std::string> labels;
    std::vector<double> widths;
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      labels.push_back("[" + std::to_string(i + 1) + std::string(8, ' ') + "]");
      widths.push_back(static_cast<double>(labels.back().size()));
    }
    const std::string text =
        DrawLayers(LayOut(graph, widths, kLayerGap), labels);
    if (text.empty()) continue;
    ++drawn;
    EXPECT_EQ(Reader(text).Read(), EdgesOf(graph)) << seed << "\n" << text;
  }
  EXPECT_GT(drawn, 250);
}

TEST(LayOut, NothingOverlaps) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    FakeProgram p = RandomProgram(seed, 40);
    const ProgramGraph graph(p.recording());
    std::vector<double> widths;
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      widths.push_back(static_cast<double>(10 + 7 * (i % 5)));
    }
    const GraphLayout layout = LayOut(graph, widths, 3);
    std::set<int> seen;
    Edges ends;
    for (std::size_t i = 0; i < layout.layers.size(); ++i) {
      double free = 0;
      for (const LayoutItem& item : layout.layers[i]) {
        EXPECT_GE(item.x - item.width / 2, free - 1e-6);
        free = item.x + item.width / 2 + 3;
        if (item.node >= 0) {
          EXPECT_TRUE(seen.insert(item.node).second);
        }
      }
      EXPECT_LE(free - 3, layout.width + 1e-6);
      if (i == layout.links.size()) continue;
      for (const LayoutLink& link : layout.links[i]) {
        if (link.to < 0) continue;
        EXPECT_EQ(layout.layers[i + 1][link.below].node, link.to);
        ends.insert({layout.nets[link.net].from, link.to});
      }
    }
    EXPECT_EQ(seen.size(), graph.nodes().size());
    EXPECT_EQ(ends, EdgesOf(graph));
  }
}

TEST(Spread, IsClosestWithinTheDistances) {
  EXPECT_THAT(Spread({5, 1, 20}, {1, 1, 1}, {2, 2}), ElementsAre(2, 4, 20));
  EXPECT_THAT(Spread({0, 0}, {3, 1}, {4}), ElementsAre(-1, 3));
  EXPECT_TRUE(Spread({}, {}, {}).empty());
}

TEST(ProgramGraphText, FitsAndNamesEachOperation) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    FakeProgram p = RandomProgram(seed, 1 + static_cast<int>(seed) * 3);
    const ProgramGraph graph(p.recording());
    for (const int width : {40, 60, 80, 120}) {
      const std::string text = GraphToText(graph, width);
      EXPECT_LE(LongestLine(text), static_cast<std::size_t>(width)) << text;
      for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 127));
    }
  }
}

TEST(ProgramGraphText, LargeGraphsAreSummarised) {
  FakeProgram p;
  int x = p.Op("ones", {});
  for (int i = 0; i < 200; ++i) x = p.Op(i % 100 == 7 ? "relu" : "add", {x});
  const std::string chain = GraphToText(ProgramGraph(p.recording()));
  EXPECT_THAT(chain, HasSubstr("1-7"));
  EXPECT_THAT(chain, HasSubstr("add, on each"));
  EXPECT_THAT(chain, HasSubstr("201 operations on 201 levels"));
  EXPECT_LT(std::count(chain.begin(), chain.end(), '\n'), 60);

  FakeProgram wide;
  for (int i = 0; i < 100; ++i) wide.Op("ones", {});
  EXPECT_THAT(GraphToText(ProgramGraph(wide.recording())),
              HasSubstr("100 x ones"));
}

TEST(ProgramGraphSvg, ShowsTheNodesAndEscapes) {
  FakeProgram p;
  const int x = p.Op("a<b>&\"c\"", {});
  p.Op("relu", {x, p.Outside()});
  p.InPlace("fill", {}, x);
  const std::string svg = GraphToSvg(ProgramGraph(p.recording()), "<t>");
  for (const char* part :
       {"<svg xmlns", "&lt;t&gt;", "a&lt;b&gt;&amp;&quot;c&quot;", "relu",
        "(2, 3) float32", "cpu:0, 500 ns", "net.cc:2", "from outside",
        "stroke-dasharray", "</svg>"}) {
    EXPECT_THAT(svg, HasSubstr(part));
  }
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
}

}  // namespace
}  // namespace d2l
