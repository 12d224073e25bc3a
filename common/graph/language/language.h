// A small language, a part of Python, for programs given as text: compile them,
// rewrite them with passes, look at the result, and run it.
//
//   const std::string text =
//       "def add(a, b):\n"
//       "    return a + b\n"
//       "print(add(add(1, 2), add(3, 4)))\n";
//   language::Program program = language::Compile(text, "add.py").value();
//   ir::Inline(program.graph);
//   std::cout << language::ToPython(program);  // print((1 + 2) + (3 + 4))
//   ir::Fold(program.graph);
//   std::cout << language::ToPython(program);  // print(10)
//   std::cout << language::Run(program);       // 10
//
// A program is a list of `def`s, assignments, `print(…)` and expressions:
// + - *, unary minus, parentheses, calls, and integers. It means what it means
// in Python, and prints the same, but for this:
//
//   - A function's body is assignments and, at its end, a `return` of a value.
//     It is indented, or stands on the line of the `def`. Only the module
//     prints.
//   - A function calls functions above it only, so there is no recursion. Its
//     variables are its arguments and what it assigns; it does not see those
//     of the module.
//   - Integers are int64 and wrap around.
//
// The program becomes an ir::Graph of numbers, int64[]. main returns what the
// program prints, in order.
//
// Errors: Compile returns InvalidArgument: file, line and column, what is
// wrong, and the line with a caret below; also for a program that takes more
// than ir::kMaxNodes operations. Thread-safety: a value, and pure functions.

#ifndef D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_
#define D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/graph/ir.h"

namespace d2l::language {

// Expressions in each other that Compile takes.
inline constexpr int kMaxNesting = 200;

struct Program {
  ir::Graph graph;  // for passes to rewrite
  // How many numbers each `print` prints.
  std::vector<int> prints;
};

// file: for messages, and the lines that operations carry. device: where the
// program's numbers are.
absl::StatusOr<Program> Compile(std::string_view text, std::string_view file,
                                Device device = Device());

// Runs the program's graph and returns what it prints. Throws what ir::Run
// throws.
std::string Run(const Program& program);

// The program after any passes in the language again. A value that is used once
// stands where it is used, unless the line becomes long. It compiles, and
// prints the same. Throws std::invalid_argument for what the language does not
// have: other operations, and regions that ir::Fuse made.
std::string ToPython(const Program& program);

// How many calls are made when the graph runs.
int CountCalls(const ir::Graph& graph);

}  // namespace d2l::language

#endif  // D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_
