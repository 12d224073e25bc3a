// The layout of a graph in layers, top to bottom (the method of Sugiyama,
// Tagawa and Toda).
//
//   GraphLayout layout = LayOut(graph, widths, /*gap=*/3);
//   for (const LayoutItem& item : layout.layers[0]) Draw(item.x, item.node);
//
// An edge that skips layers gets a lane, of no width, in each of them, so that
// no edge runs through a node. The edges of one kind that leave one node form a
// net: they share lanes until they must split.
//
// DrawLayers draws it in characters, joined by wires:
//
//   DrawLayers(layout, {"[1 input]", "[2 relu]"});
//   // [1 input]
//   //     v
//   // [2 relu]
//
// For the drawings of this package. Pure functions.

#ifndef D2L_COMMON_DRAWING_GRAPH_LAYOUT_H_
#define D2L_COMMON_DRAWING_GRAPH_LAYOUT_H_

#include <string>
#include <vector>

#include "common/graph/program_graph.h"

namespace d2l {

struct LayoutItem {
  int node = -1;  // -1: a lane
  int net = -1;   // of a lane
  double width = 0;
  double x = 0;  // of the middle; the leftmost item begins at 0
};

struct Net {
  int from = 0;  // a node
  bool data = true;
};

// A part of a net, from an item of one layer to an item of the next.
struct LayoutLink {
  int net = 0;
  int above = 0;  // the index in its layer
  int below = 0;
  EdgeKind kind = EdgeKind::kData;
  int to = 0;  // the node, if it ends here; -1 if it leads to a lane
};

struct GraphLayout {
  std::vector<Net> nets;
  std::vector<std::vector<LayoutItem>> layers;  // from left to right
  // links[i] lead from layers[i] to layers[i + 1].
  std::vector<std::vector<LayoutLink>> links;
  double width = 0;
};

// `widths` are those of the nodes; `gap` is the free space between two items.
GraphLayout LayOut(const ProgramGraph& graph, const std::vector<double>& widths,
                   double gap);

// The positions x that are closest to those `wanted`, by weighted least
// squares, with x[i + 1] - x[i] >= distances[i].
std::vector<double> Spread(const std::vector<double>& wanted,
                           const std::vector<double>& weights,
                           const std::vector<double>& distances);

// The space that the layout must leave between two items, in columns.
inline constexpr int kLayerGap = 3;

// Wires run straight down, or along a row of their own. Where two cross, the
// vertical one is drawn; '+' joins wires. Wires that carry data are solid,
// others dotted. `labels` are the nodes', with the widths that the layout was
// given. Returns "" if the wires cannot be routed.
std::string DrawLayers(const GraphLayout& layout,
                       const std::vector<std::string>& labels);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_GRAPH_LAYOUT_H_
