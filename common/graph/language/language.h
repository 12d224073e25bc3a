// A small language, a part of Python, for programs given as text: compile them,
// rewrite them with passes, look at the result, and run it.
//
//   const std::string text =
//       "def add(a, b):\n"
//       "    return a + b\n"
//       "print(add(add(1, 2), add(3, 4)))\n";
//   language::Program program = language::Compile(text, "add.py").value();
//   ir::Inline(program.graph);
//   std::cout << language::ToPython(program.graph, program);
//   // print((1 + 2) + (3 + 4))
//   ir::Fold(program.graph);
//   std::cout << language::ToPython(program.graph, program);  // print(10)
//   std::cout << language::Run(program);                      // 10
//
// A program is a list of `def`s, whose bodies are indented, assignments,
// `print(…)` and expressions: + - * /, unary minus, parentheses, calls, and
// integers and floats as literals. It means what it means in Python, and prints
// the same. What the language does not have is refused:
//
//   - A function calls functions above it only, so there is no recursion.
//   - A name is a function or a variable, and a function is defined once. A
//     function has its arguments and what it assigns; it does not see the
//     variables of the module.
//   - A function without `return` has no value to use, not even None.
//   - Integers are int64, where Python's have no limit. A program has no input,
//     so Compile goes through it once with its numbers: a result beyond int64,
//     a quotient of integers that float64 does not hold exactly, and division
//     by zero are errors that name the line. No wrong number is printed.
//
// The program becomes an ir::Graph of numbers, int64[] and float64[]. A
// function is there once for each combination of types that it is called with,
// and not at all if nothing calls it. What a call prints are results of the
// call, after its value; so main returns what the program prints, in order.
//
// Errors: Compile returns InvalidArgument: file, line and column, what is
// wrong, and the line with a caret below. Thread-safety: a value, and pure
// functions.

#ifndef D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_
#define D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/device/device.h"
#include "common/graph/interpreter.h"
#include "common/graph/ir.h"
#include "common/graph/ir_text.h"
#include "common/tensor/tensor.h"

namespace d2l::language {

// What Compile takes: bytes of text, parentheses in each other, calls in each
// other, and steps: operations, literals, arguments and printed numbers, those
// of a function counted for each of its calls.
inline constexpr std::size_t kMaxBytes = 1 << 20;
inline constexpr int kMaxNesting = 200;
inline constexpr int kMaxCallDepth = 100;
inline constexpr int kMaxSteps = ir::kMaxNodes;

// A print statement that runs in a call of a function.
struct Print {
  int arguments = 0;
  bool by_call = false;  // of another function, which has the statement
};

struct FunctionInfo {
  bool returns_value = false;  // before what it prints
  std::vector<Print> prints;   // in order
};

struct Program {
  ir::Graph graph;  // for passes to rewrite
  // By the name of a function of the graph.
  std::map<std::string, FunctionInfo> functions;
};

// file: for messages, and the lines that operations carry. device: where the
// program's numbers are.
absl::StatusOr<Program> Compile(std::string_view text, std::string_view file,
                                Device device = Device());

// Runs the program's graph and returns what it prints, as Python writes it.
// Throws what the executor throws.
using Executor = std::function<std::vector<Tensor>(const ir::Graph&)>;
std::string Run(
    const Program& program, const Executor& executor = [](const ir::Graph& g) {
      return ir::Run(g, {});
    });

// The graph, of the program after any passes, in the language again. A value
// that is used once stands where it is used; a fused region as what it fuses.
// It compiles, and prints the same. Throws std::invalid_argument for operations
// that the language does not have.
std::string ToPython(const ir::Graph& graph, const Program& program);

// How many calls are made when the graph runs.
std::int64_t CountCalls(const ir::Graph& graph);

}  // namespace d2l::language

#endif  // D2L_COMMON_GRAPH_LANGUAGE_LANGUAGE_H_
