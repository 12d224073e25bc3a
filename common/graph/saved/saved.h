// Saved programs: a program and its weights in one file, PREFIX.safetensors,
// which runs without the code that made it.
//
//   absl::Status saved = ir::SaveProgram(graph, "my_mlp");
//   absl::StatusOr<ir::Graph> loaded = ir::LoadProgram("my_mlp");
//   std::vector<Tensor> y = ir::Run(*loaded, {x});
//
// The tensors of the file are weights and constants; its metadata holds the
// program as JSON, under "d2l.program":
//
//   {"version": 3, "name": "my_mlp",
//    "arguments": [{"name": "x", "dtype": "float32", "shape": [1, 512]}],
//    "nodes": [
//      {"weight": "0.weight", "inputs": [],
//       "outputs": [{"name": "w", "dtype": "float32", "shape": [256, 512]}]},
//      {"op": "transpose", "attributes": {"dim0": "0", "dim1": "1"},
//       "inputs": [1], "at": ["net.cc", 88],
//       "outputs": [{"dtype": "float32", "shape": [512, 256]}]}],
//    "returns": [2]}
//
// Values are numbered as they are made: arguments first. Their types are
// inferred again and must agree. "by" is the user's line if a layer requested
// the operation at "at". A type has "strides" unless they are the usual ones. A
// node in place has a "target", the value that it writes to; a node with
// "constant" in place of "op" is the tensor of that name.
//
// Saving inlines calls and splits fused regions (Unfuse); loading fuses again.
// ir::ToText prints the program for people.
//
// Saving waits for the weights and writes their values of that time. Each
// loaded weight has its own memory. A program that writes to its weights writes
// to the loaded ones, not to the file.
//
// The file may be untrusted: see LoadProgram. A program's memory is bounded,
// its time is not: two lines can request a sum of 10^12 numbers. Users who run
// a stranger's program set a limit, for example with `timeout 600 run_program`.
// Thread-safe.

#ifndef D2L_COMMON_GRAPH_SAVED_SAVED_H_
#define D2L_COMMON_GRAPH_SAVED_SAVED_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/graph/ir.h"
#include "common/safetensors/safetensors.h"
#include "common/tensor/tensor.h"

namespace d2l::ir {

inline constexpr std::int64_t kSavedVersion = 3;

// Throws std::invalid_argument for a graph that is not valid, or that holds
// "from_vector". Errors: of the file; FailedPrecondition if the program writes
// to weights that share memory, since loaded weights would not.
absl::Status SaveProgram(const Graph& graph, const std::string& prefix);

// Loads the program. All of it is on `device`, whatever devices it was saved
// on.
//
// Errors: InvalidArgument, which names the file, and the program and node, for
// a file that is damaged; Unimplemented for another version; NotFound;
// ResourceExhausted if there is too little memory for the weights or values.
absl::StatusOr<Graph> LoadProgram(const std::string& prefix,
                                  Device device = Device());

// The JSON, and the tensors that it names, which must be on `device` to be
// loaded. `graph` is valid, without calls and fused regions.
std::string ProgramToJson(const Graph& graph,
                          safetensors::NamedTensors& tensors);
absl::StatusOr<Graph> ProgramFromJson(std::string_view json,
                                      const safetensors::NamedTensors& tensors,
                                      Device device = Device());

// The values in memory with the strides of the type; `values` itself if it is
// contiguous. Where a stride of 0 repeats a value, the first copy counts.
Tensor WithStrides(const Tensor& values, const Tensor& type);

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_SAVED_SAVED_H_
