// frozen_branch: a branch that the trace does not freeze.
//
//   bazel run //:exercises -- frozen_branch

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// x / 2 if the sum of x is positive, else 2 x, as an `if` would decide it: also
// when it is traced with one x and run with another.
Tensor HalveOrDouble(const Tensor& x) {
  // SOLUTION
  return Where(Sum(x) > 0, x / 2, x * 2);
  // END
}

D2L_ANSWER("frozen_branch", HalveOrDouble);

}  // namespace
}  // namespace d2l
