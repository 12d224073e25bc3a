// short_chain: add up tensors so that additions can run at the same time.
//
//   bazel run //:exercises -- short_chain

#include <cstddef>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// The sum of n tensors of one shape, at least one, by n - 1 additions x + y and
// no other operation; as few of them as possible stand one behind the other.
// Leaves the tensors as they are.
Tensor SumOfAll(const std::vector<Tensor>& xs) {
  // YOUR CODE
  throw NotDone();
}

D2L_ANSWER("short_chain", SumOfAll);

}  // namespace
}  // namespace d2l
