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
#include "absl/strings/str_join.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/source_location.h"
#include "common/drawing/graph_drawing.h"
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

std::string Shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  if (width < 3) return text.substr(0, width);
  return absl::StrCat(text.substr(0, width - 2), "..");
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

std::string PlaceText(SourceLocation at) {
  if (!at.known()) return "";
  const std::string file = at.file();
  return absl::StrCat(file.substr(file.find_last_of('/') + 1), ":", at.line());
}

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

// "5=add_(1, 3) after 4": node 5 reads what 1 and 3 made, and overwrites what 4
// reads or wrote.
std::string NodeWithInputs(const ProgramGraph& graph, int node) {
  std::vector<int> reads, after;
  for (const GraphEdge& edge : graph.edges()) {
    if (edge.to != node) continue;
    (edge.kind == EdgeKind::kData ? reads : after).push_back(edge.from + 1);
  }
  std::string text = absl::StrCat(node + 1, "=", NodeName(graph, node));
  if (!reads.empty()) {
    absl::StrAppend(&text, "(", absl::StrJoin(reads, ", "), ")");
  }
  if (after.empty()) return text;
  return text + Say(" after %s", absl::StrJoin(after, " "));
}

std::string LevelHead(const std::string& operations) {
  return absl::StrCat(Padded("level", 10), Padded("work", -10), "  ",
                      operations, "\n");
}

// `range` is a level, or levels "3-7".
std::string LevelLine(const std::string& range, double seconds,
                      const std::string& operations, int width) {
  return Wrap(operations,
              absl::StrFormat("%-10s%10s  ", range,
                              seconds > 0 ? FormatDuration(seconds) : "-"),
              width);
}

double Seconds(const ProgramGraph& graph, int node) {
  const int op = graph.nodes()[node].op;
  return op < 0 ? 0 : graph.ops()[op].seconds();
}

// A line for each level, which names its nodes.
std::string NumberedLevels(const ProgramGraph& graph, int width) {
  std::string text = LevelHead(Translated("node=op(inputs)"));
  for (int level = 0; level < graph.depth(); ++level) {
    std::vector<std::string> operations;
    double seconds = 0;
    for (int node = 0; node < static_cast<int>(graph.nodes().size()); ++node) {
      if (graph.levels()[node] != level) continue;
      operations.push_back(NodeWithInputs(graph, node));
      seconds += Seconds(graph, node);
    }
    text += LevelLine(absl::StrCat(level), seconds,
                      absl::StrJoin(operations, ", "), width);
  }
  return text;
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

// A line for equal neighbouring levels, which counts their operations.
std::string CountedLevels(const ProgramGraph& graph, int width) {
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
    ++level.names[NodeName(graph, static_cast<int>(i))];
    level.seconds += Seconds(graph, static_cast<int>(i));
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
  std::string text = LevelHead(Translated("count x operation"));
  for (const Level& line : lines) {
    const int count = line.last - line.first + 1;
    const std::string range = count == 1
                                  ? absl::StrCat(line.first)
                                  : absl::StrCat(line.first, "-", line.last);
    text += LevelLine(
        range, line.seconds,
        absl::StrCat(CountedNames(line.names),
                     count > 1 && per_line == 1 ? Translated(", on each") : ""),
        width);
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
  if (graph.total_seconds() == 0) {
    return Say("%s on %d levels, at most %d on a level", count, graph.depth(),
               graph.width());
  }
  return Say(
      "%s on %d levels, at most %d on a level; %s of work, %s of it on the "
      "critical path",
      count, graph.depth(), graph.width(),
      FormatDuration(graph.total_seconds()),
      FormatDuration(graph.critical_path_seconds()));
}

std::string GraphToText(const ProgramGraph& graph, int width, bool node_lines) {
  std::string notes = GraphSummary(graph);
  if (notes.empty()) return Translated("No operation was recorded.\n");
  const bool order = std::any_of(
      graph.edges().begin(), graph.edges().end(),
      [](const GraphEdge& edge) { return edge.kind != EdgeKind::kData; });

  std::string text;
  if (graph.nodes().size() > kMaxDrawnNodes) {
    text = CountedLevels(graph, width);
    notes += Translated(".");
  } else if (!node_lines) {
    text = NumberedLevels(graph, width);
    notes += Translated(".");
  } else {
    text = absl::StrCat(NumberedLevels(graph, width), "\n",
                        OperationLines(graph, width));
    notes += Translated(graph.critical_path().empty() ? "." : " (*).");
    if (order) {
      notes += " " + Say("\"after N\": overwrites what N reads or wrote.");
    }
  }
  return absl::StrCat(text, Wrap(notes, "", width));
}

}  // namespace d2l
