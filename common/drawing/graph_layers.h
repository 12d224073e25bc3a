// The layers of a graph in characters, joined by wires.
//
//   DrawLayers(layout, {"[1 input]", "[2 relu]"});
//   // [1 input]
//   //     v
//   // [2 relu]
//
// Wires run straight down, or along a row of their own. Where two cross, the
// one that goes down is drawn; '+' joins. Wires that carry data are solid,
// others dotted. For the drawings of this package; a pure function.

#ifndef D2L_COMMON_DRAWING_GRAPH_LAYERS_H_
#define D2L_COMMON_DRAWING_GRAPH_LAYERS_H_

#include <string>
#include <vector>

#include "common/drawing/graph_layout.h"

namespace d2l {

// What the layout must leave free between two items, in columns.
inline constexpr int kLayerGap = 3;

// labels: of the nodes, as wide as the layout was told. "" if the wires cannot
// be routed.
std::string DrawLayers(const GraphLayout& layout,
                       const std::vector<std::string>& labels);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_GRAPH_LAYERS_H_
