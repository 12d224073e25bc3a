// The language's text as instructions, for Compile.
//
// Errors: a CompileError. Pure functions.

#ifndef D2L_COMMON_GRAPH_LANGUAGE_PARSER_H_
#define D2L_COMMON_GRAPH_LANGUAGE_PARSER_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/graph/language/tokens.h"

namespace d2l::language {

using Number = std::variant<std::int64_t, double>;

enum class Code {
  kArgument,
  kLiteral,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kNegate,
  kCall,
  kPrint,
  kReturn,
};

// Its value has its number in Definition::code.
struct Instruction {
  Code code = Code::kLiteral;
  Position at;
  std::vector<int> operands;  // numbers of earlier instructions
  Number number;              // kLiteral
  int callee = -1;            // kCall: in the list of definitions
  std::string name;           // of the first variable that holds the value
};

struct Definition {
  std::string name;
  int line = 0;
  int arguments = 0;           // its first instructions
  bool returns_value = false;  // the first `return` decides
  std::vector<Instruction> code;
};

// The functions in their order; the last is the module's own statements, and
// has no name.
std::vector<Definition> Parse(absl::string_view text);

}  // namespace d2l::language

#endif  // D2L_COMMON_GRAPH_LANGUAGE_PARSER_H_
