#include <cstddef>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace one_after_the_other {
Tensor SumOfAll(const std::vector<Tensor>& xs) {
  Tensor sum = xs[0];
  for (std::size_t i = 1; i < xs.size(); ++i) sum = sum + xs[i];
  return sum;
}
}  // namespace one_after_the_other

namespace in_place {
Tensor SumOfAll(const std::vector<Tensor>& xs) {
  for (std::size_t step = 1; step < xs.size(); step *= 2) {
    for (std::size_t i = 0; i + step < xs.size(); i += 2 * step) {
      CopyTo(xs[i] + xs[i + step], xs[i]);
    }
  }
  return xs[0];
}
}  // namespace in_place

namespace without_the_last {
Tensor SumOfAll(const std::vector<Tensor>& xs) {
  std::vector<Tensor> sums = xs;
  while (sums.size() > 1) {
    std::vector<Tensor> pairs;
    for (std::size_t i = 0; i + 1 < sums.size(); i += 2) {
      pairs.push_back(sums[i] + sums[i + 1]);
    }
    sums = pairs;
  }
  return sums[0];
}
}  // namespace without_the_last

namespace stack_and_sum {
Tensor SumOfAll(const std::vector<Tensor>& xs) { return Sum(Stack(xs), {0}); }
}  // namespace stack_and_sum

namespace two_halves {
Tensor SumOfAll(const std::vector<Tensor>& xs) {
  const std::size_t half = xs.size() / 2;
  if (half == 0) return xs[0];
  Tensor left = xs[0], right = xs[half];
  for (std::size_t i = 1; i < half; ++i) left = left + xs[i];
  for (std::size_t i = half + 1; i < xs.size(); ++i) right = right + xs[i];
  return left + right;
}
}  // namespace two_halves

// To a power of two.
namespace pads_with_zeros {
Tensor SumOfAll(const std::vector<Tensor>& xs) {
  std::vector<Tensor> sums = xs;
  while ((sums.size() & (sums.size() - 1)) != 0) sums.push_back(0 * xs[0]);
  for (std::size_t half = sums.size() / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] = sums[i] + sums[half + i];
  }
  return sums[0];
}
}  // namespace pads_with_zeros

D2L_MISTAKE("short_chain", one_after_the_other, SumOfAll,
            "Each addition waits for the one before it");
D2L_MISTAKE("short_chain", in_place, SumOfAll, "here of the caller's tensor");
D2L_MISTAKE("short_chain", without_the_last, SumOfAll,
            "The number of tensors may be odd");
D2L_MISTAKE("short_chain", stack_and_sum, SumOfAll, "a Sum is one operation");
D2L_MISTAKE("short_chain", two_halves, SumOfAll, "within each part");
D2L_MISTAKE("short_chain", pads_with_zeros, SumOfAll, "Adding zeros");

}  // namespace
}  // namespace d2l
