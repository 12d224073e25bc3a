// ToProgramGraph: a function as common/drawing draws it.
//
//   ir::Optimize(graph, [](const std::string& pass, const ir::Graph& g) {
//     std::cout << DrawGraph(ir::ToProgramGraph(g.main()), pass).text;
//   });
//
// A fused region is one node, named after its operations: "fused mul add relu".
// A pure function.

#ifndef D2L_COMMON_GRAPH_PICTURE_H_
#define D2L_COMMON_GRAPH_PICTURE_H_

#include "common/graph/ir.h"
#include "common/graph/program_graph.h"

namespace d2l::ir {

ProgramGraph ToProgramGraph(const Function& function);

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_PICTURE_H_
