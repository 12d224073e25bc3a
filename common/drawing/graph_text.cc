#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/drawing/graph_drawing.h"
#include "common/drawing/graph_layout.h"
#include "common/graph/program_graph.h"
#include "common/ops/primitive/primitive.h"
#include "common/tensor/dtype.h"

namespace d2l {
namespace {

// A number with readable digits: "0.1" for 0.10000000000000001.
std::string Readable(const std::string& attribute) {
  double number;
  if (attribute.size() < 9 || !absl::SimpleAtod(attribute, &number)) {
    return attribute;
  }
  return absl::StrFormat("%.6g", number);
}

// "[3 mul (1, 2)]", with room for `wires` wires that end at it and one that
// leaves beside them.
std::string Boxed(const std::string& text, int wires) {
  std::string padded = text;
  while (static_cast<int>(padded.size()) < 2 * wires - 1) {
    padded = padded.size() % 2 == 0 ? padded + " " : " " + padded;
  }
  return absl::StrCat("[", padded, "]");
}

std::string Shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  if (width < 3) return text.substr(0, width);
  return absl::StrCat(text.substr(0, width - 2), "..");
}

std::string PlaceText(SourceLocation at) {
  if (!at.known()) return "";
  const std::string file = at.file();
  return absl::StrCat(file.substr(file.find_last_of('/') + 1), ":", at.line());
}

// "add, 2 x mul"
std::string CountedNames(const std::map<std::string, int>& names) {
  std::string text;
  for (const auto& [name, count] : names) {
    if (!text.empty()) text += ", ";
    if (count > 1) absl::StrAppend(&text, count, " x ");
    text += name;
  }
  return text;
}

}  // namespace

std::string NodeName(const ProgramGraph& graph, int node) {
  const int op = graph.nodes()[node].op;
  if (op < 0) return "input";
  return absl::StrCat(graph.ops()[op].name,
                      graph.ops()[op].in_place ? "_" : "");
}

std::string NodeLabel(const ProgramGraph& graph, int node) {
  std::string label = NodeName(graph, node);
  const int op = graph.nodes()[node].op;
  if (op < 0 || graph.ops()[op].primitive == nullptr) return label;
  const ValueRecord& value = graph.nodes()[node].value;
  for (const Attribute& attribute : graph.ops()[op].primitive->attributes()) {
    // Every node already shows the shape and the dtype of its result.
    if (attribute.second == value.shape.ToString()) continue;
    if (attribute.second == DTypeName(value.dtype)) continue;
    absl::StrAppend(&label, " ", attribute.first, "=",
                    Readable(attribute.second));
  }
  return label;
}

namespace {

// The layers and their wires; "" if they do not fit.
std::string Layers(const ProgramGraph& graph, int width) {
  std::vector<int> wires(graph.nodes().size(), 0);
  for (const GraphEdge& edge : graph.edges()) ++wires[edge.to];
  // The number identifies the node in the lines below; the other parts are left
  // out if there is no room for them.
  for (const int detail : {3, 2, 1, 0}) {
    std::vector<std::string> labels;
    std::vector<double> widths;
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      std::string label = absl::StrCat(i + 1);
      const int node = static_cast<int>(i);
      if (detail == 3) {
        absl::StrAppend(&label, " ", Shortened(NodeLabel(graph, node), 24));
      } else if (detail > 0) {
        absl::StrAppend(&label, " ", NodeName(graph, node));
      }
      if (detail > 1) {
        absl::StrAppend(&label, " ", graph.nodes()[i].value.shape.ToString());
      }
      labels.push_back(Boxed(label, wires[i]));
      widths.push_back(static_cast<double>(labels.back().size()));
    }
    const GraphLayout layout = LayOut(graph, widths, kLayerGap);
    if (layout.width > width) continue;
    const std::string text = DrawLayers(layout, labels);
    const std::vector<std::string> lines = absl::StrSplit(text, '\n');
    if (!text.empty() &&
        std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
          return line.size() <= static_cast<std::size_t>(width);
        })) {
      return text;
    }
  }
  return "";
}

std::string OperationLines(const ProgramGraph& graph, int width) {
  const std::set<int> critical(graph.critical_path().begin(),
                               graph.critical_path().end());
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const int node = static_cast<int>(i);
    const ValueRecord& value = graph.nodes()[i].value;
    rows.push_back(
        {absl::StrFormat("%3d%c", node + 1,
                         critical.count(node) > 0 ? '*' : ' '),
         NodeLabel(graph, node),
         absl::StrCat(value.shape.ToString(), " ", DTypeName(value.dtype)), "-",
         "-", ""});
    if (graph.nodes()[i].op < 0) continue;
    const GraphOp& op = graph.ops()[graph.nodes()[i].op];
    if (op.stream >= 0) rows[i][3] = graph.streams()[op.stream];
    if (op.end > 0) rows[i][4] = FormatDuration(op.seconds());
    rows[i][5] = PlaceText(op.line);
  }
  std::vector<std::size_t> widths(rows[0].size(), 0);
  std::size_t total = widths.size() - 1;
  for (std::size_t c = 0; c < widths.size(); ++c) {
    for (const auto& row : rows) widths[c] = std::max(widths[c], row[c].size());
    total += widths[c];
  }
  // The least important parts are cut first: place, name, value.
  const std::size_t room = static_cast<std::size_t>(width);
  for (const auto& [column, least] :
       {std::pair(5, 14), {1, 12}, {2, 12}, {5, 0}, {1, 6}, {2, 4}}) {
    const std::size_t keep = std::min<std::size_t>(widths[column], least);
    while (total > room && widths[column] > keep) {
      --widths[column];
      --total;
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const int w = static_cast<int>(widths[c]);
      const std::string value = Shortened(row[c], widths[c]);
      absl::StrAppend(&line, c == 0 ? "" : " ",
                      c == 4 ? absl::StrFormat("%*s", w, value)
                             : absl::StrFormat("%-*s", w, value));
    }
    line.resize(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string LevelLines(const ProgramGraph& graph, int width) {
  struct Level {
    int first;
    int last;
    std::map<std::string, int> names;  // per level
    double seconds;
  };
  std::vector<Level> levels;
  for (int i = 0; i < graph.depth(); ++i) levels.push_back({i, i, {}, 0});
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    Level& level = levels[graph.levels()[i]];
    const int op = graph.nodes()[i].op;
    ++level.names[NodeName(graph, static_cast<int>(i))];
    if (op >= 0) level.seconds += graph.ops()[op].seconds();
  }
  // Equal neighbouring levels become one line; if that is too long, a line
  // holds a fixed number of levels.
  constexpr int kMost = 40;  // fit a screen
  std::vector<Level> lines;
  int per_line = 1;
  while (true) {
    lines.clear();
    for (const Level& level : levels) {
      const bool joins =
          !lines.empty() && (per_line == 1 ? lines.back().names == level.names
                                           : level.first % per_line != 0);
      if (!joins) {
        lines.push_back(level);
        continue;
      }
      lines.back().last = level.last;
      lines.back().seconds += level.seconds;
      if (per_line == 1) continue;
      for (const auto& [name, count] : level.names) {
        lines.back().names[name] += count;
      }
    }
    if (lines.size() <= kMost) break;
    per_line = (graph.depth() + kMost - 1) / kMost;
  }
  std::string text = absl::StrCat(Padded("level", 10), Padded("work", -10),
                                  "  ", Translated("operations"), "\n");
  for (const Level& line : lines) {
    const int count = line.last - line.first + 1;
    const std::string range = count == 1
                                  ? absl::StrCat(line.first)
                                  : absl::StrCat(line.first, "-", line.last);
    const std::string first =
        absl::StrFormat("%-10s%10s  ", range,
                        line.seconds > 0 ? FormatDuration(line.seconds) : "-");
    absl::StrAppend(&text, Wrap(absl::StrCat(CountedNames(line.names),
                                             count > 1 && per_line == 1
                                                 ? Translated(", on each")
                                                 : ""),
                                first, width));
  }
  return text;
}

}  // namespace

std::string GraphSummary(const ProgramGraph& graph) {
  const auto operations =
      std::count_if(graph.nodes().begin(), graph.nodes().end(),
                    [](const GraphNode& node) { return node.op >= 0; });
  if (operations == 0) return "";
  const std::string count = operations == 1 ? Say("%d operation", operations)
                                            : Say("%d operations", operations);
  return Say(
      "%s on %d levels, at most %d on a level; %s of work, %s of it on the "
      "critical path",
      count, graph.depth(), graph.width(),
      FormatDuration(graph.total_seconds()),
      FormatDuration(graph.critical_path_seconds()));
}

std::string GraphToText(const ProgramGraph& graph, int width) {
  std::string notes = GraphSummary(graph);
  if (notes.empty()) return Translated("No operation was recorded.\n");
  const bool order = std::any_of(
      graph.edges().begin(), graph.edges().end(),
      [](const GraphEdge& edge) { return edge.kind != EdgeKind::kData; });

  std::string text;
  const std::string layers =
      graph.nodes().size() > kMaxDrawnNodes ? "" : Layers(graph, width);
  if (layers.empty()) {
    text = LevelLines(graph, width);
    notes += Translated(".");
  } else {
    text = absl::StrCat(layers, "\n", OperationLines(graph, width));
    notes += Translated(graph.critical_path().empty() ? "." : " (*).");
    if (order) {
      notes += " " + Say("Dotted lines: must be read or written before it is "
                         "overwritten.");
    }
  }
  return absl::StrCat(text, Wrap(notes, "", width));
}

}  // namespace d2l
