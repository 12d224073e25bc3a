// A small language, a part of Python, for programs given as text: compile them,
// rewrite them with passes, look at the result, and run it.
//
//   const std::string text =
//       "def add(a, b):\n"
//       "    return a + b\n"
//       "print(add(add(1, 2), add(3, 4)))\n";
//   ir::Graph program = language::Compile(text, "add.py").value();
//   ir::Inline(program);
//   std::cout << language::ToPython(program);  // print((1 + 2) + (3 + 4))
//   ir::Fold(program);
//   std::cout << language::ToPython(program);  // print(10)
//   std::cout << language::Run(program);       // 10
//
// A program is a list of `def`s, assignments and `print(…)` of one value.
// Values are integers, + - *, unary minus, parentheses and calls. It has the
// meaning and the output that it has in Python, with these differences:
//
//   - A statement is a line. A function's body is indented by four spaces: it
//     is assignments and, at its end, a `return`. Only the module prints.
//   - A function calls functions above it only, so there is no recursion. It
//     does not see the variables of the module, and no variable has the name
//     of a function above it.
//   - Integers are int64 and wrap around.
//
// The program becomes an ir::Graph of numbers, int64[]. main returns the values
// that the program prints, in order.
//
// Errors: Compile returns InvalidArgument with the file, the line and the
// column, the reason, and the line with a caret below; also for a program that
// takes more than ir::kMaxNodes operations. Thread-safety: pure functions.

#ifndef D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_
#define D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/graph/ir.h"

namespace d2l::language {

// The deepest nesting of expressions that Compile accepts.
inline constexpr int kMaxNesting = 200;

// `file` is for messages and for the lines that operations carry. The program's
// numbers are on `device`.
absl::StatusOr<ir::Graph> Compile(std::string_view text, std::string_view file,
                                  Device device = Device());

// Runs the program and returns its output. Throws what ir::Run throws.
std::string Run(const ir::Graph& program);

// The program, after any passes, as text of the language. A value that is used
// once is written where it is used, unless the line becomes long. The text
// compiles, and prints the same. Throws std::invalid_argument for operations
// that the language does not have, and for regions that ir::Fuse made.
std::string ToPython(const ir::Graph& program);

// The number of calls that the program makes when it runs.
int CountCalls(const ir::Graph& program);

}  // namespace d2l::language

#endif  // D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_
