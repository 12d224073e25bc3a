#include <stdexcept>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace reads {
std::vector<Tensor> CheckedSqrt(const Tensor& x) {
  float negative = 0;
  for (const float value : ToVector<float>(x)) negative += value < 0 ? 1 : 0;
  return {Sqrt(x), Full({}, negative, x.device())};
}
}  // namespace reads

namespace drops_the_check {
std::vector<Tensor> CheckedSqrt(const Tensor& x) {
  return {Sqrt(x), Zeros({}, x.device())};
}
}  // namespace drops_the_check

namespace sums_the_values {
std::vector<Tensor> CheckedSqrt(const Tensor& x) {
  return {Sqrt(x), Sum(Where(x < 0, x, ZerosLike(x)))};
}
}  // namespace sums_the_values

D2L_MISTAKE("read_in_trace", reads, CheckedSqrt, "the trace read a value");
D2L_MISTAKE("read_in_trace", drops_the_check, CheckedSqrt, "The check is lost");
D2L_MISTAKE("read_in_trace", sums_the_values, CheckedSqrt,
            "Count the elements");

}  // namespace
}  // namespace d2l
