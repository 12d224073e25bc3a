// wait_for_less: read a sum as soon as it is there, behind other work.
//
//   bazel run //:exercises -- wait_for_less

#include <functional>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// Enqueues the sum of x, calls more(), which enqueues other work on the same
// device, and returns the sum as soon as it is there.
double SumFirst(const Tensor& x, const std::function<void()>& more) {
  // SOLUTION
  const Tensor sum = Sum(x);
  more();
  return Item(sum);
  // END
}

D2L_ANSWER("wait_for_less", SumFirst);

}  // namespace
}  // namespace d2l
