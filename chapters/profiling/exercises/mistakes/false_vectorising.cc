#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace fills_rows {
Tensor Squares(int count, Device device) {
  const Tensor x = Zeros({count, 10, 10}, device);
  for (int j = 0; j < count; ++j) x[j] = Rand({10, 10}, device);
  return x * x;
}
}  // namespace fills_rows

namespace one_for_all {
Tensor Squares(int count, Device device) {
  const Tensor x = Expand(Rand({1, 10, 10}, device), {count, 10, 10});
  return x * x;
}
}  // namespace one_for_all

namespace draws_twice {
Tensor Squares(int count, Device device) {
  return Rand({count, 10, 10}, device) * Rand({count, 10, 10}, device);
}
}  // namespace draws_twice

D2L_MISTAKE("false_vectorising", fills_rows, Squares, "The loop has moved");
D2L_MISTAKE("false_vectorising", one_for_all, Squares, "is drawn anew");
D2L_MISTAKE("false_vectorising", draws_twice, Squares, "product of two draws");

}  // namespace
}  // namespace d2l
