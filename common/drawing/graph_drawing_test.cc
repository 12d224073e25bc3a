#include "common/drawing/graph_drawing.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/child_process.h"
#include "common/device/device.h"
#include "common/drawing/graphviz.h"
#include "common/graph/program_graph.h"
#include "common/graph/program_testing.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
namespace fs = std::filesystem;

std::size_t Count(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

std::size_t LongestLine(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, line.size());
  }
  return longest;
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
  EXPECT_THAT(ToDot(graph, "t"), HasSubstr("2 operations on "));
}

TEST(GraphToText, NamesKindsOfEdgesAndLines) {
  FakeProgram p;
  const int x = p.Op("ones", {});
  p.InPlace("add", {x}, x);
  p.Op("relu", {x});
  p.InPlace("fill", {}, x);
  const std::string text = GraphToText(p.Graph());
  EXPECT_THAT(text, HasSubstr("2=add_(1)"));
  EXPECT_THAT(text, HasSubstr("4=fill_ after 3"));
  EXPECT_THAT(text, HasSubstr("\"after N\""));
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

TEST(ToDot, HasEveryNodeAndEdge) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    FakeProgram p = RandomProgram(seed, static_cast<int>(seed));
    const ProgramGraph graph = p.Graph();
    std::istringstream lines(ToDot(graph, "random"));
    const std::regex node("  ([0-9]+) \\[label=.*");
    const std::regex edge("  ([0-9]+) -> ([0-9]+) \\[(style=dashed)?.*");
    const std::regex rank("  \\{rank=same(( [0-9]+)+)\\}");
    std::size_t nodes = 0;
    std::map<int, int> levels;
    std::set<std::tuple<int, int, bool>> edges;
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_match(line, match, node)) {
        EXPECT_EQ(std::stoul(match[1]), ++nodes);
      } else if (std::regex_match(line, match, edge)) {
        EXPECT_TRUE(edges
                        .insert({std::stoi(match[1]), std::stoi(match[2]),
                                 !match[3].matched})
                        .second);
      } else if (std::regex_match(line, match, rank)) {
        std::istringstream members(match[1]);
        int member = 0;
        while (members >> member) {
          levels.insert({member, graph.levels()[member - 1]});
        }
        // All members have the level of the last one.
        members = std::istringstream(match[1]);
        for (int other = 0; members >> other;) {
          EXPECT_EQ(levels[other], levels[member]);
        }
      }
    }
    EXPECT_EQ(nodes, graph.nodes().size());
    EXPECT_EQ(levels.size(), graph.nodes().size());
    std::set<std::tuple<int, int, bool>> expected;
    for (const GraphEdge& e : graph.edges()) {
      expected.insert({e.from + 1, e.to + 1, e.kind == EdgeKind::kData});
    }
    EXPECT_EQ(edges, expected) << seed;
  }
}

// Names that would end a label, or begin an escape or an entity.
FakeProgram HardNames() {
  FakeProgram p;
  const int x = p.Op("a<b>&\"c\"\\N", {});
  p.Op("&lt;\n\"];x[", {x, p.Outside()});
  p.InPlace("fill", {}, x);
  return p;
}

TEST(ToDot, Escapes) {
  const std::string dot = ToDot(HardNames().Graph(), "\"t\\");
  for (const char* part :
       {R"(digraph "\"t\\" {)", R"("1 a<b>&amp;\"c\"\\N\n(2, 3) float32\n)",
        R"(&amp;lt;\n\"];x[\n)", "cpu:0, 500 ns", "net.cc:2", "from outside",
        "style=dashed", "Dashed: "}) {
    EXPECT_THAT(dot, HasSubstr(part));
  }
}

bool DotIsMissing() { return RunProgram("dot", {"-V"}).exit_code == 127; }

TEST(DotToSvg, ShowsEveryNodeEdgeAndLabel) {
  if (DotIsMissing()) GTEST_SKIP() << "there is no dot (Debian: graphviz)";
  for (unsigned seed = 0; seed < 10; ++seed) {
    const ProgramGraph graph =
        RandomProgram(seed, 4 * static_cast<int>(seed)).Graph();
    const absl::StatusOr<std::string> svg = DotToSvg(ToDot(graph, "z = x"));
    ASSERT_TRUE(svg.ok()) << svg.status();
    EXPECT_EQ(Count(*svg, "class=\"node\""), graph.nodes().size());
    EXPECT_EQ(Count(*svg, "class=\"edge\""), graph.edges().size());
    EXPECT_THAT(*svg, HasSubstr(">z = x<"));
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      const std::string label = NodeLabel(graph, static_cast<int>(i));
      EXPECT_THAT(*svg, HasSubstr(absl::StrCat(">", i + 1, " ", label, "<")));
    }
  }
}

TEST(DotToSvg, ShowsNamesAsTheyAre) {
  if (DotIsMissing()) GTEST_SKIP() << "there is no dot (Debian: graphviz)";
  const absl::StatusOr<std::string> svg =
      DotToSvg(ToDot(HardNames().Graph(), "<t>, in Chinese 图"));
  ASSERT_TRUE(svg.ok()) << svg.status();
  EXPECT_THAT(*svg, MatchesRegex("<svg width=\"[0-9]+\" height=\"[0-9]+\".*"));
  for (const char* part :
       {"&lt;t&gt;, in Chinese 图", "1 a&lt;b&gt;&amp;&quot;c&quot;\\N",
        "3 &amp;lt;<", ">&quot;];x[<", "(2, 3) float32", "stroke-dasharray",
        "</svg>"}) {
    EXPECT_THAT(*svg, HasSubstr(part));
  }
  for (const char* part : {"<script", "href", "<!DOCTYPE", "<a "}) {
    EXPECT_THAT(*svg, Not(HasSubstr(part)));
  }
}

// Programs named dot, in a folder that is the whole PATH.
class DotToSvgWith : public ::testing::Test {
 protected:
  DotToSvgWith() : folder_(fs::path(::testing::TempDir()) / "only_dot") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("PATH", folder_.c_str(), 1);
  }
  ~DotToSvgWith() override {
    setenv("PATH", path_.c_str(), 1);
    fs::remove_all(folder_);
  }
  void Write(const std::string& commands) {
    std::ofstream(folder_ / "dot") << "#!/bin/sh\n" << commands << "\n";
    fs::permissions(folder_ / "dot", fs::perms::owner_all);
  }

 private:
  const std::string path_ = std::getenv("PATH");
  const fs::path folder_;
};

TEST_F(DotToSvgWith, NoDotSaysWhatToInstall) {
  const absl::Status status = DotToSvg("digraph {}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("apt-get install graphviz"));
}

TEST_F(DotToSvgWith, FailuresAreNamed) {
  Write("read line; echo \"syntax error in $line\" >&2; exit 3");
  absl::Status status = DotToSvg("digraph {\n}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(status.message()),
            "Graphviz's dot, which draws graphs, ended with exit code 3. "
            "\"syntax error in digraph {\"");
  Write("echo nothing");
  status = DotToSvg("digraph {}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("printed no SVG"));
  Write("while true; do :; done");
  status = DotToSvg("digraph {}", std::chrono::milliseconds(50)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("0.05 s"));
}

}  // namespace
}  // namespace d2l
