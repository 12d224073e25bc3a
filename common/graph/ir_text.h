// The text of a program, which prints, parses, and is saved.
//
//   d2l.program 1
//   def my_mlp(%x: float32[1, 512]) {
//     %w = weight "0.weight" : float32[256, 512]
//     %0 = transpose(%w) {dim0=0, dim1=1} : float32[512, 256]
//     %h = matmul(%x, %0) : float32[1, 256] @"net.cc":88
//     return %h
//   }
//   run my_mlp
//
//   absl::StatusOr<ir::Graph> graph = ir::ParseText(text);
//   graph->Bind("0.weight", w);
//
// After the first line may stand the hash of the file that holds the weights
// (artefact.h): weights sha256 "ba7816bf…".
//
// One node per line; other forms are
//
//   write %y = add(%y) {second=1.0}          in place, into the memory of %y
//   %c = constant [1.0, -0.0, inf] : float32[3]
//   %a, %b = call f(%x) : float32[2], int64[]
//   %z = fused(%x, %w) {                     the same, its values are its own
//     …
//   }
//
// Numbers are exact; a NaN is written as its bits, 0x7fc00000. A value without
// a name is numbered. `@` names the line that requested the operation, and
// `by` that of the user, where a layer did. ParseText(ToText(g)) prints as g
// does.
//
// Text may be untrusted. Types are claims, compared with what inference says.
// The last line is there so that a text that was cut off is no program.
//
// Pure functions.

#ifndef D2L_COMMON_GRAPH_IR_TEXT_H_
#define D2L_COMMON_GRAPH_IR_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/device/device.h"
#include "common/graph/ir.h"

namespace d2l::ir {

inline constexpr int kTextVersion = 1;
// How a text begins, before the version; and its line of the weights' hash.
inline constexpr absl::string_view kTextHeader = "d2l.program ";
inline constexpr absl::string_view kTextWeights = "weights sha256 ";
// Whether it stands in a text without quotes: letters, digits and "_.+-:".
bool IsPlain(absl::string_view text);
// What ParseText takes: nodes, as many functions, and the bytes of all values,
// so that no sum of them overflows.
inline constexpr int kMaxNodes = 100'000;
inline constexpr std::int64_t kMaxBytes = std::int64_t{1} << 44;

// with_lines: also `@`. Throws std::invalid_argument for what no text
// describes, "from_vector". It reads constants, and waits for them.
std::string ToText(const Graph& graph, bool with_lines = true);

// device: if given, all of the program is on it, whatever the text says.
// Errors: InvalidArgument, which names the line of the text; Unimplemented for
// a newer version.
absl::StatusOr<Graph> ParseText(std::string_view text,
                                std::optional<Device> device = std::nullopt);

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_IR_TEXT_H_
