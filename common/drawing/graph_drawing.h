// Drawings of a ProgramGraph.
//
//   cell.Show(DrawGraph(graph, "z = x * y + 2"));
//   std::cout << GraphToText(graph);
//
// Pure functions.

#ifndef D2L_COMMON_DRAWING_GRAPH_DRAWING_H_
#define D2L_COMMON_DRAWING_GRAPH_DRAWING_H_

#include <string>

#include "common/base/console/text.h"
#include "common/drawing/drawing.h"
#include "common/graph/program_graph.h"

namespace d2l {

// The largest graph that is drawn node by node in text.
inline constexpr int kMaxDrawnNodes = 40;

// "mul", "sub_" in place, "input".
std::string NodeName(const ProgramGraph& graph, int node);
// With the attributes that the value does not show: "add second=2".
std::string NodeLabel(const ProgramGraph& graph, int node);

// "9 operations on 4 levels, at most 3 on a level; 1.20 ms of work, 800 us of
// it on the critical path"; "" if there are none.
std::string GraphSummary(const ProgramGraph& graph);

// For a terminal: layers from top to bottom, then a line for each operation. A
// graph that is too large or too wide has a line for each level instead.
std::string GraphToText(const ProgramGraph& graph, int width = kTextWidth);

// A box for each node, shaded by stream, with name, shape, time and line;
// edges of kinds other than data are dashed, the critical path is bold.
std::string GraphToSvg(const ProgramGraph& graph,
                       const std::string& title = "");

Drawing DrawGraph(const ProgramGraph& graph, const std::string& name);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_GRAPH_DRAWING_H_
