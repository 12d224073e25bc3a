// Whatever the text is, the answer is a program, which passes leave printing
// what it printed, or an error that says where.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "common/graph/ir.h"
#include "common/graph/language/language.h"
#include "common/graph/passes/passes.h"

namespace {

void Check(bool right) {
  if (!right) std::abort();
}

// Compiled, rewritten or not, and printed as text, it prints the same.
void CheckPrints(const d2l::language::Program& program,
                 const std::string& printed) {
  d2l::ir::Verify(program.graph);
  Check(d2l::language::Run(program) == printed);
  const std::string text = d2l::language::ToPython(program);
  const absl::StatusOr<d2l::language::Program> again =
      d2l::language::Compile(text, "again");
  Check(again.ok() && d2l::language::Run(*again) == printed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<d2l::language::Program> program =
      d2l::language::Compile(text, "fuzz");
  if (!program.ok()) {
    Check(absl::StartsWith(program.status().message(), "fuzz:"));
    return 0;
  }
  const std::string printed = d2l::language::Run(*program);
  CheckPrints(*program, printed);
  d2l::ir::Inline(program->graph);
  CheckPrints(*program, printed);
  d2l::ir::Fold(program->graph);
  CheckPrints(*program, printed);
  d2l::ir::Optimize(program->graph);
  Check(d2l::language::Run(*program) == printed);
  return 0;
}
