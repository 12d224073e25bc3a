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
// Values are integers, + - *, unary minus, parentheses and calls. It means what
// it means in Python, and prints the same, but for this:
//
//   - A statement is a line. A function's body is indented by four spaces: it
//   is
//     assignments and, at its end, a `return`. Only the module prints.
//   - A function calls functions above it only, so there is no recursion. It
//     does not see the variables of the module, and no variable is called as a
//     function above it is.
//   - Integers are int64 and wrap around.
//
// The program becomes an ir::Graph of numbers, int64[]. main returns what the
// program prints, in order.
//
// Errors: Compile returns InvalidArgument: file, line and column, what is
// wrong, and the line with a caret below; also for a program that takes more
// than ir::kMaxNodes operations. Thread-safety: pure functions.

#ifndef D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_
#define D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/graph/ir.h"

namespace d2l::language {

// Expressions in each other that Compile takes.
inline constexpr int kMaxNesting = 200;

// file: for messages, and the lines that operations carry. device: where the
// program's numbers are.
absl::StatusOr<ir::Graph> Compile(std::string_view text, std::string_view file,
                                  Device device = Device());

// Runs the program and returns what it prints. Throws what ir::Run throws.
std::string Run(const ir::Graph& program);

// The program after any passes in the language again. A value that is used once
// stands where it is used, unless the line becomes long. It compiles, and
// prints the same. Throws std::invalid_argument for what the language does not
// have: other operations, and regions that ir::Fuse made.
std::string ToPython(const ir::Graph& program);

// How many calls are made when the program runs.
int CountCalls(const ir::Graph& program);

}  // namespace d2l::language

#endif  // D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_
