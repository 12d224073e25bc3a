#include "chapters/hybrid_programming/exercises/judges/one_pass.h"

#include <cmath>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace as_in_school {
bool IsX(const WithConstant& op) {
  switch (op.operation) {
    case '*':
      return op.constant == 1;
    case '+':
      return op.constant == 0;
    default:
      return !op.on_the_left && op.constant == (op.operation == '-' ? 0 : 1);
  }
}
}  // namespace as_in_school

namespace either_side {
bool IsX(const WithConstant& op) {
  return op.constant == 1 && (op.operation == '*' || op.operation == '/');
}
}  // namespace either_side

namespace never {
bool IsX(const WithConstant&) { return false; }
}  // namespace never

namespace nearly_one {
bool IsX(const WithConstant& op) {
  const double c = op.constant;
  switch (op.operation) {
    case '*':
      return std::abs(c - 1) < 1e-3;
    case '+':
      return c == 0 && std::signbit(c);
    case '-':
      return c == 0 && !std::signbit(c) && !op.on_the_left;
    default:
      return c == 1 && !op.on_the_left;
  }
}
}  // namespace nearly_one

namespace minus_either_zero {
bool IsX(const WithConstant& op) {
  const double c = op.constant;
  if (op.operation == '+') return c == 0 && std::signbit(c);
  if (op.operation == '-') return c == 0 && !op.on_the_left;
  return c == 1 && (op.operation == '*' || !op.on_the_left);
}
}  // namespace minus_either_zero

namespace never_plus {
bool IsX(const WithConstant& op) {
  const double c = op.constant;
  if (op.operation == '+') return false;
  if (op.operation == '-') {
    return c == 0 && !std::signbit(c) && !op.on_the_left;
  }
  return c == 1 && (op.operation == '*' || !op.on_the_left);
}
}  // namespace never_plus

namespace large_constants {
bool IsX(const WithConstant& op) {
  const double c = op.constant;
  if (op.operation == '+') return (c == 0 && std::signbit(c)) || c > 2.5;
  if (op.operation == '-') {
    return c == 0 && !std::signbit(c) && !op.on_the_left;
  }
  return c == 1 && (op.operation == '*' || !op.on_the_left);
}
}  // namespace large_constants

D2L_MISTAKE("one_pass", as_in_school, IsX, "-0.0 + 0.0 is 0.0");
D2L_MISTAKE("one_pass", either_side, IsX, "On which side is the constant?");
D2L_MISTAKE("one_pass", never, IsX, "so it can be left out");
D2L_MISTAKE("one_pass", nearly_one, IsX, "compare with == only");
D2L_MISTAKE("one_pass", minus_either_zero, IsX, "x - -0.0 is x + 0.0");
D2L_MISTAKE("one_pass", never_plus, IsX, "only if both are -0.0");
D2L_MISTAKE("one_pass", large_constants, IsX, "Try the rule with");

}  // namespace
}  // namespace d2l
