#include "common/drawing/graph_drawing.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device.h"
#include "common/drawing/graph_layout.h"
#include "common/graph/program_graph.h"
#include "common/graph/program_testing.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
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

std::size_t LongestLine(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, line.size());
  }
  return longest;
}

// Reads a drawing as a person does: follows each wire from its node, through
// corners and over crossings, to the nodes where it ends.
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
    const ProgramGraph graph = p.Graph();
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
    const ProgramGraph graph = p.Graph();
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

TEST(NodeLabel, ShowsWhatTheValueDoesNot) {
  const Tensor x = Ones({1, 2}, Device(DeviceType::kCpu, 0));
  Tracer tracer;
  {
    const ScopedOpListener listen(&tracer);
    Tensor z = x * 0.1;
    z -= x;
  }
  const ProgramGraph graph = tracer.Graph();
  EXPECT_EQ(NodeLabel(graph, 0), "input");
  EXPECT_THAT(NodeLabel(graph, 1), MatchesRegex("mul [a-z]*=0.1"));
  EXPECT_EQ(NodeName(graph, 2), "sub_");
  EXPECT_EQ(NodeLabel(graph, 2), "sub_");
}

TEST(GraphToText, OfNothing) {
  EXPECT_EQ(GraphToText(ProgramGraph({})), "No operation was recorded.\n");
  EXPECT_THAT(GraphToSvg(ProgramGraph({}), "t"), HasSubstr("No operation"));
}

// An input is a node of the graph, but no operation.
TEST(GraphSummary, CountsOperations) {
  const Tensor x = Ones({1, 2}, Device(DeviceType::kCpu, 0));
  Tracer tracer;
  {
    const ScopedOpListener listen(&tracer);
    x * 2 + x;
  }
  const ProgramGraph graph = tracer.Graph();
  EXPECT_EQ(graph.nodes().size(), 3u);
  EXPECT_THAT(GraphSummary(graph), HasSubstr("2 operations on "));
  EXPECT_THAT(GraphToText(graph), HasSubstr("2 operations on "));
  EXPECT_THAT(GraphToSvg(graph, "t"), HasSubstr("2 operations on "));
}

TEST(GraphToText, NamesKindsOfEdgesAndLines) {
  FakeProgram p;
  const int x = p.Op("ones", {});
  p.InPlace("add", {x}, x);
  p.Op("relu", {x});
  p.InPlace("fill", {}, x);
  const std::string text = GraphToText(p.Graph());
  EXPECT_THAT(text, HasSubstr("Dotted lines"));
  EXPECT_THAT(text, HasSubstr("net.cc:2"));
  EXPECT_THAT(text, HasSubstr("add_"));
}

TEST(GraphToText, FitsAndNamesEachOperation) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    FakeProgram p = RandomProgram(seed, 1 + static_cast<int>(seed) * 3);
    const ProgramGraph graph = p.Graph();
    for (const int width : {40, 60, 80, 120}) {
      const std::string text = GraphToText(graph, width);
      EXPECT_LE(LongestLine(text), static_cast<std::size_t>(width)) << text;
      for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c < 127));
    }
  }
}

TEST(GraphToText, LargeGraphsAreSummarised) {
  FakeProgram p;
  int x = p.Op("ones", {});
  for (int i = 0; i < 200; ++i) x = p.Op(i % 100 == 7 ? "relu" : "add", {x});
  const std::string chain = GraphToText(p.Graph());
  EXPECT_THAT(chain, HasSubstr("1-7"));
  EXPECT_THAT(chain, HasSubstr("add, on each"));
  EXPECT_THAT(chain, HasSubstr("201 operations on 201 levels"));
  EXPECT_LT(std::count(chain.begin(), chain.end(), '\n'), 60);

  FakeProgram wide;
  for (int i = 0; i < 100; ++i) wide.Op("ones", {});
  EXPECT_THAT(GraphToText(wide.Graph()), HasSubstr("100 x ones"));
}

TEST(GraphToSvg, ShowsTheNodesAndEscapes) {
  FakeProgram p;
  const int x = p.Op("a<b>&\"c\"", {});
  p.Op("relu", {x, p.Outside()});
  p.InPlace("fill", {}, x);
  const std::string svg = GraphToSvg(p.Graph(), "<t>");
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
