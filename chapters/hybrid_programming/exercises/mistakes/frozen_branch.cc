#include <cstdint>

#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/dtype.h"
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

namespace mixes_the_arms {
Tensor HalveOrDouble(const Tensor& x) {
  const Tensor positive = To(Sum(x) > 0, DType::kFloat32);
  return positive * (x / 2) + (1 - positive) * (x * 2);
}
}  // namespace mixes_the_arms

namespace looks_at_the_memory {
// The device's memory is the host's here, and nothing says that it is read.
Tensor HalveOrDouble(const Tensor& x) {
  Synchronize(x.device());
  const auto* values = static_cast<const float*>(x.data());
  float sum = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) sum += values[i];
  return sum > 0 ? x / 2 : x * 2;
}
}  // namespace looks_at_the_memory

namespace writes_into_x {
Tensor HalveOrDouble(const Tensor& x) {
  Tensor y = x;
  y *= Where(Sum(x) > 0, 0.5, Full({}, 2, x.device()));
  return y;
}
}  // namespace writes_into_x

namespace nan_is_positive {
Tensor HalveOrDouble(const Tensor& x) {
  return Where(Sum(x) <= 0, x * 2, x / 2);
}
}  // namespace nan_is_positive

namespace nearly_zero {
Tensor HalveOrDouble(const Tensor& x) {
  return Where(Sum(x) > 1e-6, x / 2, x * 2);
}
}  // namespace nearly_zero

D2L_MISTAKE("frozen_branch", reads_the_sum, HalveOrDouble,
            "the trace read a value");
D2L_MISTAKE("frozen_branch", element_by_element, HalveOrDouble,
            "The sum decides for all elements");
D2L_MISTAKE("frozen_branch", zero_is_positive, HalveOrDouble,
            "A sum of 0 is not positive");
D2L_MISTAKE("frozen_branch", mixes_the_arms, HalveOrDouble,
            "0 * infinity is NaN");
D2L_MISTAKE("frozen_branch", looks_at_the_memory, HalveOrDouble,
            "keeps the branch that was taken");
D2L_MISTAKE("frozen_branch", writes_into_x, HalveOrDouble,
            "x belongs to the caller");
D2L_MISTAKE("frozen_branch", nan_is_positive, HalveOrDouble,
            "NaN is not positive");
D2L_MISTAKE("frozen_branch", nearly_zero, HalveOrDouble,
            "A sum is positive if");

}  // namespace
}  // namespace d2l
