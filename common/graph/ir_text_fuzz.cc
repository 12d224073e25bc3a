// Whatever the text of a program is, the answer is a program that prints and
// parses back, or an error that says something.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/graph/ir.h"
#include "common/graph/ir_text.h"
#include "common/graph/memory_plan.h"
#include "common/graph/passes.h"

namespace {

void Check(bool right) {
  if (!right) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<d2l::ir::Graph> graph = d2l::ir::ParseText(text);
  if (!graph.ok()) {
    Check(!graph.status().message().empty());
    return 0;
  }
  const std::string printed = d2l::ir::ToText(*graph);
  const absl::StatusOr<d2l::ir::Graph> again = d2l::ir::ParseText(printed);
  Check(again.ok() && d2l::ir::ToText(*again) == printed);
  // Passes that run no operation, whose results might be of any size.
  d2l::ir::Inline(*graph);
  d2l::ir::Simplify(*graph);
  d2l::ir::MergeCommonSubexpressions(*graph);
  d2l::ir::RemoveDeadCode(*graph);
  d2l::ir::Fuse(*graph);
  Check(d2l::ir::Verify(*graph).ok());
  d2l::ir::PeakBytes(*graph);
  return 0;
}
