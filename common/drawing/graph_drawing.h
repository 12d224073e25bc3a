// Drawings of a ProgramGraph.
//
//   cell.Show(DrawGraph(graph, "z = x * y + 2"));
//   std::cout << GraphToText(graph) << ToDot(graph, "z = x * y + 2");
//
// Pure functions.

#ifndef D2L_COMMON_DRAWING_GRAPH_DRAWING_H_
#define D2L_COMMON_DRAWING_GRAPH_DRAWING_H_

#include <string>

#include "common/base/console/text.h"
#include "common/drawing/drawing.h"
#include "common/graph/program_graph.h"

namespace d2l {

// The largest graph of which the text names each node.
inline constexpr int kMaxDrawnNodes = 40;

// "net.cc:12", without the folder.
std::string PlaceText(SourceLocation at);
// "mul", "sub_" in place, "input".
std::string NodeName(const ProgramGraph& graph, int node);
// With the attributes that the value does not show: "add second=2".
std::string NodeLabel(const ProgramGraph& graph, int node);

// "9 operations on 4 levels, at most 3 on a level; 1.20 ms of work, 800 us of
// it on the critical path"; without times if nothing ran, "" if there are none.
std::string GraphSummary(const ProgramGraph& graph);

// For a terminal: a line for each level, such as "4=mul(1, 3)" for node 4,
// which reads nodes 1 and 3; then a line for each node. Of a graph with more
// nodes than kMaxDrawnNodes, only levels, on which operations are counted.
// node_lines: false for the levels alone, where a screen has other things, too.
std::string GraphToText(const ProgramGraph& graph, int width = kTextWidth,
                        bool node_lines = true);

// In Graphviz's language, for its program dot (graphviz.h): a box for each
// node, shaded by stream, with name, shape, time and line, in a row for each
// level; edges of kinds other than data are dashed, the critical path is bold.
std::string ToDot(const ProgramGraph& graph, const std::string& title = "");

Drawing DrawGraph(const ProgramGraph& graph, const std::string& name,
                  bool node_lines = true);

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_GRAPH_DRAWING_H_
