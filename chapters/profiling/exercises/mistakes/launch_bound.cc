#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace row_by_row {
Tensor Normalize(const Tensor& x) {
  const Tensor y = Zeros(x.shape(), x.device());
  for (int i = 0; i < x.size(0); ++i) y[i] = x[i] / Sum(x[i]);
  return y;
}
}  // namespace row_by_row

namespace reads_the_sums {
Tensor Normalize(const Tensor& x) {
  const Tensor sums =
      FromVector(ToVector<float>(Sum(x, {1})), {x.size(0), 1}, x.device());
  return x / sums;
}
}  // namespace reads_the_sums

namespace columns {
Tensor Normalize(const Tensor& x) { return x / Sum(x, {0}); }
}  // namespace columns

namespace in_place {
Tensor Normalize(const Tensor& x) {
  Tensor y = x;
  y /= Sum(x, {1}, /*keepdim=*/true);
  return y;
}
}  // namespace in_place

namespace without_keepdim {
Tensor Normalize(const Tensor& x) { return x / Sum(x, {1}); }
}  // namespace without_keepdim

namespace positive_sums_only {
Tensor Normalize(const Tensor& x) { return x / Abs(Sum(x, {1}, true)); }
}  // namespace positive_sums_only

D2L_MISTAKE("launch_bound", row_by_row, Normalize, "A loop over rows enqueues");
D2L_MISTAKE("launch_bound", reads_the_sums, Normalize, "can stay on");
D2L_MISTAKE("launch_bound", columns, Normalize, "a sum of its own");
D2L_MISTAKE("launch_bound", in_place, Normalize, "has changed x");
D2L_MISTAKE("launch_bound", without_keepdim, Normalize, "do not broadcast");
D2L_MISTAKE("launch_bound", positive_sums_only, Normalize, "may be negative");

}  // namespace
}  // namespace d2l
