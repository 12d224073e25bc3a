// What Compile and ToPython share: operators, and names that are not taken.

#ifndef D2L_COMMON_GRAPH_LANGUAGE_SYNTAX_H_
#define D2L_COMMON_GRAPH_LANGUAGE_SYNTAX_H_

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/kernels/op_tables.h"

namespace d2l::language {

// Operators of a higher level hold more tightly.
inline constexpr int kSumLevel = 0;
inline constexpr int kProductLevel = 1;
inline constexpr int kUnaryLevel = 2;
inline constexpr int kAtomLevel = 3;
inline constexpr struct {
  char sign;
  int level;
  kernels::BinaryOp op;
} kOperators[] = {{'+', kSumLevel, kernels::BinaryOp::kAdd},
                  {'-', kSumLevel, kernels::BinaryOp::kSubtract},
                  {'*', kProductLevel, kernels::BinaryOp::kMultiply},
                  {'/', kProductLevel, kernels::BinaryOp::kDivide}};

// Names that are taken, and the last number at the end of each.
using Names = std::map<std::string, int>;

// The name, or the name with a number if it is taken. It is taken then.
inline std::string Unique(const std::string& name, Names& names) {
  const auto [taken, is_new] = names.emplace(name, 1);
  if (is_new) return name;
  for (;;) {
    std::string numbered = absl::StrCat(name, "_", ++taken->second);
    if (names.emplace(numbered, 1).second) return numbered;
  }
}

}  // namespace d2l::language

#endif  // D2L_COMMON_GRAPH_LANGUAGE_SYNTAX_H_
