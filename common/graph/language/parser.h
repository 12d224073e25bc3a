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
#include "common/kernels/op_tables.h"

namespace d2l::language {

using Number = std::variant<std::int64_t, double>;

enum class Code {
  kArgument,
  kLiteral,
  kNegate,
  kBinary,
  kCall,
  kPrint,
  kReturn,
};

// Operators of a higher level hold more tightly.
struct Operator {
  char sign;
  int level;
  kernels::BinaryOp op;
};
inline constexpr int kSumLevel = 0;
inline constexpr int kProductLevel = 1;
inline constexpr int kUnaryLevel = 2;
inline constexpr int kAtomLevel = 3;
inline constexpr Operator kOperators[] = {
    {'+', kSumLevel, kernels::BinaryOp::kAdd},
    {'-', kSumLevel, kernels::BinaryOp::kSubtract},
    {'*', kProductLevel, kernels::BinaryOp::kMultiply},
    {'/', kProductLevel, kernels::BinaryOp::kDivide},
};

// Its value has its number in Definition::code.
struct Instruction {
  Code code = Code::kLiteral;
  Position at;
  std::vector<int> operands;  // numbers of earlier instructions
  Number number;              // kLiteral
  kernels::BinaryOp op = kernels::BinaryOp::kAdd;  // kBinary
  int callee = -1;   // kCall: in the list of definitions
  std::string name;  // of the first variable that holds the value
};

struct Definition {
  std::string name;
  int arguments = 0;              // its first instructions
  bool returns_value = false;     // the first `return` decides
  std::vector<Instruction> code;  // up to the first `return`
};

// The functions in their order; the last is the module's own statements.
std::vector<Definition> Parse(absl::string_view text);

}  // namespace d2l::language

#endif  // D2L_COMMON_GRAPH_LANGUAGE_PARSER_H_
