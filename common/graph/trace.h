// Trace: runs a function once and records the operations it requests.
//
//   const auto mlp = [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
//     return {Relu(MatMul(x[0], w) + b)};
//   };
//   ir::Graph graph = ir::Trace(mlp, {x}, {"mlp", {{"w", w}, {"b", b}}});
//
// The function runs as usual: its operations are enqueued, its results are
// right. A tensor that it uses is a weight if it is neither an argument nor
// made in it; the program refers to it: later writes to it are seen. Anything
// but operations on tensors (a branch, a print, a number of the host's) is not
// in the program: it happened while tracing.
//
// Errors: reading a value (Item, ToVector, printing) throws std::logic_error,
// which names the line of the read and the line that made the value: when the
// program runs again, that value does not exist. Operations on several streams
// throw std::invalid_argument: their order would be lost. Exceptions of the
// function are passed on.
//
// Thread-safety: any thread may call it; operations that other threads request
// at the same time are not recorded.

#ifndef D2L_COMMON_GRAPH_TRACE_H_
#define D2L_COMMON_GRAPH_TRACE_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/graph/ir.h"
#include "common/tensor/tensor.h"

namespace d2l::ir {

using TensorFunction =
    std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct TraceOptions {
  std::string name = "main";
  // Names for weights; others are called w0, w1, ….
  std::vector<std::pair<std::string, Tensor>> weights = {};
  // If not null, receives the function's results.
  std::vector<Tensor>* results = nullptr;
};

Graph Trace(const TensorFunction& function, const std::vector<Tensor>& inputs,
            const TraceOptions& options = {},
            SourceLocation at = SourceLocation::Current());

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_TRACE_H_
