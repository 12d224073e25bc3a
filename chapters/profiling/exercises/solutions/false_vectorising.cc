// false_vectorising: a loop that is gone, not moved.
//
//   bazel run //:exercises -- false_vectorising

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// Returns (count, 10, 10): the squares of `count` random matrices, each number
// of them drawn from [0, 1) and multiplied by itself. However many there are,
// at most three operations are enqueued. Rand(shape, device) draws the numbers
// of a tensor of any shape.
Tensor Squares(int count, Device device) {
  // SOLUTION
  const Tensor x = Rand({count, 10, 10}, device);
  return x * x;
  // END
}

D2L_ANSWER("false_vectorising", Squares);

}  // namespace
}  // namespace d2l
