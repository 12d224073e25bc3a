// FusedArgsOf: a fused region as the program of one kernel of a GPU
// (FusedArgs).
//
//   std::optional<kernels::FusedArgs> args = ir::FusedArgsOf(body);
//   if (!args) return;  // its operations are launched one by one (Unfuse)
//   args->memory[0].data = x.data();  // the arguments, then the results
//   kernels::cuda::Enqueue(stream, label, *args);
//
// A pure function.

#ifndef D2L_COMMON_GRAPH_FUSED_ARGS_H_
#define D2L_COMMON_GRAPH_FUSED_ARGS_H_

#include <optional>

#include "common/graph/ir.h"
#include "common/kernels/kernels.h"

namespace d2l::ir {

// `body` is that of a fused region of a valid graph. Returns nothing if the
// kernel cannot hold it: it has values other than float32 and uint8, an
// operation on uint8 that is not a comparison, a copy or a where, or too many
// of something.
std::optional<kernels::FusedArgs> FusedArgsOf(const Function& body);

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_FUSED_ARGS_H_
