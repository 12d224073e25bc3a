// Artefacts: a program in two files, PREFIX.program (text, ir_text.h) and
// PREFIX.safetensors (its weights), which run without the code that made them.
//
//   absl::Status saved = ir::SaveProgram(graph, "my_mlp");
//   absl::StatusOr<ir::Graph> loaded = ir::LoadProgram("my_mlp");
//   std::vector<Tensor> y = ir::Run(*loaded, {x});
//
// The text holds the SHA-256 of the weights, so that files of two programs, or
// of two moments, are not mixed up. It is written last.
//
// A weight is saved with the values that it has then, which saving waits for,
// and each has memory of its own when it is loaded. Where the program writes to
// its weights, this goes to the loaded ones, and not to the files.
//
// The files may be untrusted: see LoadProgram. What a program takes is bounded
// in memory, not in time: two lines can ask for a sum of 10^12 numbers. Whoever
// runs a stranger's program sets the limit, as tools/run_program does with
// --timeout_s. Thread-safe.

#ifndef D2L_COMMON_GRAPH_ARTEFACT_ARTEFACT_H_
#define D2L_COMMON_GRAPH_ARTEFACT_ARTEFACT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/graph/ir.h"
#include "common/tensor/tensor.h"

namespace d2l::ir {

// Throws std::invalid_argument for a graph that is not valid, that has no text
// (ToText), or that uses a weight that is not bound. Errors: of the files;
// FailedPrecondition if the program writes to weights that share memory, since
// loaded ones would not.
absl::Status SaveProgram(const Graph& graph, const std::string& prefix);

// The program, its weights bound. All of it is on `device`, whatever devices
// it was saved on.
//
// Errors: InvalidArgument, which names the file, and the line if it is one of
// the text's, for files that are damaged or that do not belong together;
// Unimplemented for a newer version; NotFound; ResourceExhausted if weights or
// values need more memory than there is.
absl::StatusOr<Graph> LoadProgram(const std::string& prefix,
                                  Device device = Device());

// The values in memory of the strides that the type has; `values` itself if it
// is contiguous. Of values that a stride of 0 repeats, the first counts.
Tensor WithStrides(const Tensor& values, const Tensor& type);

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_ARTEFACT_ARTEFACT_H_
