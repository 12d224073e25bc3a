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

D2L_MISTAKE("short_chain", one_after_the_other, SumOfAll,
            "Each addition waits for the one before it");
D2L_MISTAKE("short_chain", in_place, SumOfAll, "here to that of the caller's");
D2L_MISTAKE("short_chain", without_the_last, SumOfAll, "number may be odd");

}  // namespace
}  // namespace d2l
