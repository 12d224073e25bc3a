#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace reads_the_sum {
Tensor HalveOrDouble(const Tensor& x) {
  if (Item(Sum(x)) > 0) return x / 2;
  return x * 2;
}
}  // namespace reads_the_sum

namespace element_by_element {
Tensor HalveOrDouble(const Tensor& x) { return Where(x > 0, x / 2, x * 2); }
}  // namespace element_by_element

namespace zero_is_positive {
Tensor HalveOrDouble(const Tensor& x) {
  return Where(Sum(x) >= 0, x / 2, x * 2);
}
}  // namespace zero_is_positive

D2L_MISTAKE("frozen_branch", reads_the_sum, HalveOrDouble,
            "the trace read a value");
D2L_MISTAKE("frozen_branch", element_by_element, HalveOrDouble,
            "One sum decides for all elements");
D2L_MISTAKE("frozen_branch", zero_is_positive, HalveOrDouble,
            "A sum of 0 is not positive");

}  // namespace
}  // namespace d2l
