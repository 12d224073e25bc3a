#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/drawing/graph_drawing.h"
#include "common/drawing/svg.h"
#include "common/graph/program_graph.h"
#include "common/tensor/dtype.h"

namespace d2l {
namespace {

// In a label "\" begins an escape and "&" an entity.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(PrintableText(text),
                             {{"&", "&amp;"}, {"\\", "\\\\"}, {"\"", "\\\""}});
}

// The attributes of text in this size. Each line of the label is ended by
// `line_end`: "\n" centres it, "\l" puts it to the left.
std::string Label(const std::vector<std::string>& lines, const char* line_end) {
  std::string label;
  for (const std::string& line : lines) {
    absl::StrAppend(&label, Escaped(line), line_end);
  }
  return absl::StrCat("label=\"", label, "\"");
}

std::vector<std::string> Lines(const std::string& text, std::size_t columns) {
  return absl::StrSplit(WrapWords(text, "", "", columns), '\n',
                        absl::SkipEmpty());
}

// Streams are greys: colours stand for operations, as in a timeline.
const char* StreamShade(int stream) {
  constexpr const char* kShades[] = {"#e2e2e2", "#c4c4c4", "#f1f1f1",
                                     "#d3d3d3"};
  return kShades[stream % 4];
}

std::string Node(const ProgramGraph& graph, int number, bool critical) {
  const GraphNode& node = graph.nodes()[number];
  std::vector<std::string> lines =
      Lines(absl::StrCat(number + 1, " ", NodeLabel(graph, number)), 30);
  lines.push_back(absl::StrCat(node.value.shape.ToString(), " ",
                               DTypeName(node.value.dtype)));
  const char* fill = "white";
  if (node.op < 0) {
    lines.push_back(Translated("from outside"));
  } else {
    const GraphOp& op = graph.ops()[node.op];
    if (op.stream >= 0) {
      fill = StreamShade(op.stream);
      lines.push_back(absl::StrCat(
          graph.streams()[op.stream], ", ",
          op.end > 0 ? FormatDuration(op.seconds()) : Translated("not run")));
    } else {
      lines.push_back(Translated("nothing launched"));
    }
    if (op.line.known()) lines.push_back(PlaceText(op.line));
  }
  return absl::StrCat("  ", number + 1, " [", Label(lines, "\\n"),
                      " fillcolor=\"", fill, "\"",
                      critical ? " penwidth=2.6" : "", "]\n");
}

std::string Edge(const GraphEdge& edge, bool critical) {
  return absl::StrCat(
      "  ", edge.from + 1, " -> ", edge.to + 1, " [",
      edge.kind == EdgeKind::kData ? "" : "style=dashed color=\"#B22222\"",
      critical ? " penwidth=2.6" : "", "]\n");
}

}  // namespace

std::string ToDot(const ProgramGraph& graph, const std::string& title) {
  const std::vector<int>& path = graph.critical_path();
  const std::set<int> critical(path.begin(), path.end());
  std::set<std::pair<int, int>> critical_edges;
  for (std::size_t i = 1; i < path.size(); ++i) {
    critical_edges.insert({path[i - 1], path[i]});
  }
  std::string nodes;
  std::map<int, std::vector<int>> levels;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const int node = static_cast<int>(i);
    absl::StrAppend(&nodes, Node(graph, node, critical.count(node) > 0));
    levels[graph.levels()[i]].push_back(node + 1);
  }
  std::string ranks;
  for (const auto& [level, members] : levels) {
    absl::StrAppend(&ranks, "  {rank=same ", absl::StrJoin(members, " "),
                    "}\n");
  }
  std::string edges;
  bool dashed = false;
  for (const GraphEdge& edge : graph.edges()) {
    absl::StrAppend(&edges,
                    Edge(edge, critical_edges.count({edge.from, edge.to}) > 0));
    dashed = dashed || edge.kind != EdgeKind::kData;
  }
  std::string notes = GraphSummary(graph);
  if (!path.empty()) notes += Translated(" (bold)");
  std::vector<std::string> head = Lines(notes, 60);
  head.insert(head.begin(), Translated(title));
  if (dashed) {
    head.push_back(
        Translated("Dashed: overwrites what the other read or wrote."));
  }
  return absl::StrCat(
      "digraph \"", Escaped(title), "\" {\n", "  graph [", Label(head, "\\l"),
      " labelloc=t labeljust=l fontsize=12 fontname=\"", kSvgFonts,
      "\" fontcolor=\"#111111\" pad=0.2]\n",
      "  node [shape=box style=\"filled,rounded\" fontsize=11 fontname=\"",
      kSvgFonts, "\" fontcolor=\"#111111\" color=\"#333333\"]\n",
      "  edge [color=\"#333333\" arrowsize=0.6]\n", nodes, ranks, edges, "}\n");
}

Drawing DrawGraph(const ProgramGraph& graph, const std::string& name,
                  bool node_lines) {
  return {name, GraphToText(graph, TextWidth(), node_lines), "",
          ToDot(graph, name)};
}

}  // namespace d2l
