#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/drawing/graph_drawing.h"
#include "common/drawing/graph_layout.h"
#include "common/drawing/svg.h"
#include "common/graph/program_graph.h"
#include "common/tensor/dtype.h"

namespace d2l {
namespace {

constexpr double kMargin = 24;
constexpr double kHead = 76;  // title, key and margin above the first layer
constexpr double kBoxHeight = 62;
constexpr double kItemGap = 26;
constexpr double kFont = 11;
// A larger graph is a list of levels: the full picture would be unreadable.
constexpr std::size_t kMaxSvgNodes = 300;

// The text of a box.
struct Box {
  std::vector<std::string> lines;
  std::string fill;
  std::string tooltip;
  double width = 0;
};

// Streams are greys: colours stand for operations, as in a timeline.
std::string StreamShade(int stream) {
  constexpr const char* kShades[] = {"#d5d5d5", "#a3a3a3", "#ededed",
                                     "#bcbcbc"};
  return kShades[stream % 4];
}

Box MakeBox(const ProgramGraph& graph, int number) {
  const GraphNode& node = graph.nodes()[number];
  const std::string shape = node.value.shape.ToString();
  Box box;
  box.lines.push_back(NodeLabel(graph, number));
  if (box.lines[0].size() > 26)
    box.lines[0] = box.lines[0].substr(0, 24) + "..";
  box.lines.push_back(absl::StrCat(shape, " ", DTypeName(node.value.dtype)));
  box.fill = "#ffffff";
  box.tooltip = NodeLabel(graph, number);
  if (node.op >= 0) {
    const GraphOp& op = graph.ops()[node.op];
    const std::string place = op.line.known() ? op.line.ToString() : "";
    std::string where = Translated("nothing launched");
    if (op.stream >= 0) {
      box.fill = StreamShade(op.stream);
      where = graph.streams()[op.stream];
      absl::StrAppend(
          &where, ", ",
          op.end > 0 ? FormatDuration(op.seconds()) : Translated("not run"));
    }
    box.lines.push_back(where);
    if (!place.empty()) {
      box.lines.push_back(place.substr(place.find_last_of('/') + 1));
    }
    absl::StrAppend(&box.tooltip, Say(" at %s", place));
  } else {
    box.lines.push_back(Translated("from outside"));
  }
  for (const std::string& line : box.lines) {
    box.width = std::max(box.width, Svg::TextWidth(line, kFont) + 16);
  }
  return box;
}

// The place where each link of a gap ends: a node's edges share its upper side,
// in the order of the items that they come from.
std::vector<double> EndsOf(const GraphLayout& layout, std::size_t gap) {
  const std::vector<LayoutLink>& links = layout.links[gap];
  std::map<int, std::set<std::tuple<double, int, std::size_t>>> by_item;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const double from = layout.layers[gap][links[i].above].x;
    by_item[links[i].below].insert({from, links[i].net, i});
  }
  std::vector<double> ends(links.size());
  for (const auto& [below, arriving] : by_item) {
    const LayoutItem& item = layout.layers[gap + 1][below];
    double rank = 0;
    for (const auto& [from, net, i] : arriving) {
      const double place = ++rank / (static_cast<double>(arriving.size()) + 1);
      ends[i] = item.x + item.width * (place - 0.5);
    }
  }
  return ends;
}

// The links that carry the critical path: gap and index.
std::set<std::pair<std::size_t, std::size_t>> CriticalLinks(
    const ProgramGraph& graph, const GraphLayout& layout) {
  std::set<std::pair<int, int>> steps;  // from, to
  const std::vector<int>& path = graph.critical_path();
  for (std::size_t i = 1; i < path.size(); ++i) {
    steps.insert({path[i - 1], path[i]});
  }
  std::set<std::pair<std::size_t, std::size_t>> critical;
  std::set<std::pair<std::size_t, int>> lanes;  // layer and item
  for (std::size_t gap = layout.links.size(); gap-- > 0;) {
    for (std::size_t i = 0; i < layout.links[gap].size(); ++i) {
      const LayoutLink& link = layout.links[gap][i];
      const bool on =
          link.to >= 0 ? steps.count({layout.nets[link.net].from, link.to}) > 0
                       : lanes.count({gap + 1, link.below}) > 0;
      if (!on) continue;
      critical.insert({gap, i});
      if (layout.layers[gap][link.above].node < 0) {
        lanes.insert({gap, link.above});
      }
    }
  }
  return critical;
}

// More edges across a gap need more room.
double GapHeight(const GraphLayout& layout, std::size_t gap) {
  return std::min(140.0,
                  44 + 2.5 * static_cast<double>(layout.links[gap].size()));
}

void DrawGap(const GraphLayout& layout, std::size_t gap, double top,
             double bottom,
             const std::set<std::pair<std::size_t, std::size_t>>& critical,
             Svg* svg) {
  const std::vector<double> ends = EndsOf(layout, gap);
  for (std::size_t i = 0; i < layout.links[gap].size(); ++i) {
    const LayoutLink& link = layout.links[gap][i];
    const LayoutItem& above = layout.layers[gap][link.above];
    const bool data = link.kind == EdgeKind::kData;
    Svg::Stroke stroke;
    stroke.colour = data ? "#333333" : "#B22222";
    stroke.width = critical.count({gap, i}) > 0 ? 2.6 : 1.1;
    stroke.dashed = !data;
    stroke.arrow = link.to >= 0;
    double from_y = top;
    double from_x = kMargin + above.x;
    if (above.node < 0) {
      from_y = top - kBoxHeight;  // a lane runs straight through its layer
    } else if (!data) {
      from_x += std::min(14.0, above.width / 4);
    }
    const double to_x = kMargin + ends[i];
    const double middle = (top + bottom) / 2;
    svg->Path(absl::StrFormat("M %.2f %.2f L %.2f %.2f C %.2f %.2f %.2f %.2f "
                              "%.2f %.2f",
                              from_x, from_y, from_x, top, from_x, middle, to_x,
                              middle, to_x, bottom),
              stroke);
  }
}

void DrawBox(const Box& box, const LayoutItem& item, double y, bool critical,
             Svg* svg) {
  const double left = kMargin + item.x - item.width / 2;
  svg->Rect(left, y, item.width, kBoxHeight,
            {"#ffffff", "#333333", critical ? 2.6 : 1, 5}, box.tooltip);
  // A stripe shows the stream: text stays black on white.
  svg->Rect(left + 2, y + 2, item.width - 4, 16, {box.fill, "none", 1, 3});
  double line_y = y + 14;
  for (std::size_t i = 0; i < box.lines.size(); ++i) {
    svg->Text(kMargin + item.x, line_y, box.lines[i],
              {kFont, "middle", "#111111", i == 0});
    line_y += i == 0 ? 16 : 13.5;
  }
}

std::string Headline(const ProgramGraph& graph) {
  return GraphSummary(graph) + Translated(" (bold)");
}

// Draws which colour is which stream. Returns the key's lower end.
double DrawKey(const ProgramGraph& graph, double y, Svg* svg) {
  double x = kMargin;
  const auto& streams = graph.streams();
  for (std::size_t i = 0; i < streams.size(); ++i) {
    svg->Rect(x, y - 9, 14, 10, {StreamShade(static_cast<int>(i)), "#333333"});
    svg->Text(x + 19, y, streams[i], {kFont});
    x += 35 + Svg::TextWidth(streams[i], kFont);
  }
  for (const GraphEdge& edge : graph.edges()) {
    if (edge.kind == EdgeKind::kData) continue;
    const std::string text =
        Translated("overwrites what the other read or wrote");
    svg->Line(x, y - 4, x + 24, y - 4, {"#B22222", 1.1, true, true});
    svg->Text(x + 30, y, text, {kFont});
    return x + 30 + Svg::TextWidth(text, kFont);
  }
  return x;
}

}  // namespace

std::string GraphToSvg(const ProgramGraph& graph, const std::string& title) {
  if (GraphSummary(graph).empty() || graph.nodes().size() > kMaxSvgNodes) {
    return TextAsSvg(GraphToText(graph), Translated(title));
  }
  std::vector<Box> boxes;
  std::vector<double> widths;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    boxes.push_back(MakeBox(graph, static_cast<int>(i)));
    widths.push_back(boxes.back().width);
  }
  const GraphLayout layout = LayOut(graph, widths, kItemGap);
  double height = kHead + kMargin;
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    height += kBoxHeight;
    if (i < layout.links.size()) height += GapHeight(layout, i);
  }
  Svg unused(0, 0, "");
  const double width =
      std::max({layout.width, Svg::TextWidth(Headline(graph), kFont),
                Svg::TextWidth(Translated(title), 14),
                DrawKey(graph, 0, &unused)}) +
      2 * kMargin;

  Svg svg(width, height, Translated(title));
  svg.Text(kMargin, 24, Translated(title), {14, "start", "#111111", true});
  svg.Text(kMargin, 42, Headline(graph), {kFont});
  DrawKey(graph, 60, &svg);
  const auto critical = CriticalLinks(graph, layout);
  const std::set<int> path(graph.critical_path().begin(),
                           graph.critical_path().end());
  double y = kHead;
  for (std::size_t i = 0; i < layout.layers.size(); ++i) {
    if (i < layout.links.size()) {
      DrawGap(layout, i, y + kBoxHeight, y + kBoxHeight + GapHeight(layout, i),
              critical, &svg);
    }
    for (const LayoutItem& item : layout.layers[i]) {
      if (item.node < 0) continue;
      DrawBox(boxes[item.node], item, y, path.count(item.node) > 0, &svg);
    }
    y += kBoxHeight;
    if (i < layout.links.size()) y += GapHeight(layout, i);
  }
  return svg.ToString();
}

Drawing DrawGraph(const ProgramGraph& graph, const std::string& name) {
  return {name, GraphToText(graph, TextWidth()), GraphToSvg(graph, name)};
}

}  // namespace d2l
