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

namespace zero_is_negative {
std::vector<Tensor> CheckedSqrt(const Tensor& x) {
  return {Sqrt(x), Sum(Where(x > 0, ZerosLike(x), OnesLike(x)))};
}
}  // namespace zero_is_negative

namespace counts_nan {
std::vector<Tensor> CheckedSqrt(const Tensor& x) {
  const Tensor root = Sqrt(x);
  return {root, Sum(Where(root == root, ZerosLike(x), OnesLike(x)))};
}
}  // namespace counts_nan

namespace a_part_of_all {
std::vector<Tensor> CheckedSqrt(const Tensor& x) {
  return {Sqrt(x), Mean(Where(x < 0, OnesLike(x), ZerosLike(x)))};
}
}  // namespace a_part_of_all

namespace count_first {
std::vector<Tensor> CheckedSqrt(const Tensor& x) {
  return {Sum(Where(x < 0, OnesLike(x), ZerosLike(x))), Sqrt(x)};
}
}  // namespace count_first

namespace nearly_zero {
std::vector<Tensor> CheckedSqrt(const Tensor& x) {
  return {Sqrt(x), Sum(Where(x < -1e-3, OnesLike(x), ZerosLike(x)))};
}
}  // namespace nearly_zero

namespace writes_into_x {
std::vector<Tensor> CheckedSqrt(const Tensor& x) {
  const Tensor negative = Sum(Where(x < 0, OnesLike(x), ZerosLike(x)));
  CopyTo(Sqrt(x), x);
  return {x, negative};
}
}  // namespace writes_into_x

D2L_MISTAKE("read_in_trace", reads, CheckedSqrt, "the trace read a value");
D2L_MISTAKE("read_in_trace", drops_the_check, CheckedSqrt, "The check is lost");
D2L_MISTAKE("read_in_trace", sums_the_values, CheckedSqrt,
            "Count the elements");
D2L_MISTAKE("read_in_trace", zero_is_negative, CheckedSqrt,
            "Zero is not negative");
D2L_MISTAKE("read_in_trace", counts_nan, CheckedSqrt, "NaN is not negative");
D2L_MISTAKE("read_in_trace", a_part_of_all, CheckedSqrt, "Mean divides by");
D2L_MISTAKE("read_in_trace", count_first, CheckedSqrt, "The roots first");
D2L_MISTAKE("read_in_trace", nearly_zero, CheckedSqrt,
            "A number is negative if");
D2L_MISTAKE("read_in_trace", writes_into_x, CheckedSqrt,
            "x is the caller's: Sqrt(x)");

}  // namespace
}  // namespace d2l
