// DotToSvg: the picture that Graphviz's program dot makes of a graph in its
// language.
//
//   const absl::StatusOr<std::string> svg = DotToSvg(ToDot(graph, "z = x"));
//   if (!svg.ok()) std::cerr << svg.status().message() << "\n";
//
// Thread-safe; blocks until dot has ended.

#ifndef D2L_COMMON_DRAWING_GRAPHVIZ_H_
#define D2L_COMMON_DRAWING_GRAPHVIZ_H_

#include <chrono>
#include <string>

#include "absl/status/statusor.h"

namespace d2l {

// As in svg.h: self-contained, its lengths in pixels. NotFound, with what to
// install, if dot cannot be run; Internal, with what it said, if it failed;
// DeadlineExceeded at the limit.
absl::StatusOr<std::string> DotToSvg(
    const std::string& dot,
    std::chrono::milliseconds time_limit = std::chrono::seconds(30));

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_GRAPHVIZ_H_
