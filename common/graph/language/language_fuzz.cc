// For any text, the result is a program, which prints the same after passes, or
// an error that names a place.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/graph/ir.h"
#include "common/graph/language/language.h"
#include "common/graph/passes/passes.h"

namespace {

void Check(bool right) {
  if (!right) std::abort();
}

// Printed as text, rewritten or not, and compiled, the program prints the same.
void CheckPrints(const d2l::ir::Graph& program, const std::string& printed) {
  d2l::ir::Verify(program);
  Check(d2l::language::Run(program) == printed);
  const std::string text = d2l::language::ToPython(program);
  const absl::StatusOr<d2l::ir::Graph> again =
      d2l::language::Compile(text, "again");
  Check(again.ok() && d2l::language::Run(*again) == printed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<d2l::ir::Graph> program = d2l::language::Compile(text, "fuzz");
  if (!program.ok()) {
    Check(!program.status().message().empty());
    return 0;
  }
  const std::string printed = d2l::language::Run(*program);
  CheckPrints(*program, printed);
  d2l::ir::Inline(*program);
  CheckPrints(*program, printed);
  d2l::ir::Fold(*program);
  CheckPrints(*program, printed);
  d2l::ir::Optimize(*program);
  Check(d2l::language::Run(*program) == printed);
  return 0;
}
