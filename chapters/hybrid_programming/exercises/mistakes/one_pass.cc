#include "chapters/hybrid_programming/exercises/judges/one_pass.h"

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

D2L_MISTAKE("one_pass", as_in_school, IsX, "-0.0 + 0.0 is 0.0");
D2L_MISTAKE("one_pass", either_side, IsX, "On which side is the constant?");
D2L_MISTAKE("one_pass", never, IsX, "could have been left out");

}  // namespace
}  // namespace d2l
