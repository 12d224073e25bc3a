// The interpreter: runs a program's operations one by one, as the function that
// was traced did. Its results are the reference for every other executor.
//
//   std::vector<Tensor> y = ir::Run(graph, {x});
//
// Results are bit for bit those of the operations themselves, and so are late
// errors, random numbers, and what listeners are told. A value's memory is let
// go of after its last use.
//
// Errors: throws std::invalid_argument for inputs that are not of the
// arguments' types, strides included (whether an operation copied or made a
// view was decided for those), and for a weight that is not bound; else what
// the operations throw. Thread-safety: as of the operations.

#ifndef D2L_COMMON_GRAPH_INTERPRETER_H_
#define D2L_COMMON_GRAPH_INTERPRETER_H_

#include <vector>

#include "absl/types/span.h"
#include "common/graph/ir.h"
#include "common/tensor/tensor.h"

namespace d2l::ir {

// The graph is valid, as a trace, LoadProgram and passes make it.
std::vector<Tensor> Run(const Graph& graph, absl::Span<const Tensor> inputs);

// Throws std::invalid_argument unless the program may be run with these.
void CheckArguments(const Graph& graph, absl::Span<const Tensor> inputs);

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_INTERPRETER_H_
