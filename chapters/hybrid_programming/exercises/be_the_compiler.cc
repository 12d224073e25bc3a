// be_the_compiler: leave out what a compiler would leave out.
//
//   bazel run //:exercises -- be_the_compiler

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// What these four statements return, bit for bit, with two operations:
//
//   const Tensor e = a + b;
//   const Tensor f = a - b;
//   const Tensor g = a + b;
//   return e * g;
Tensor Shortened(const Tensor& a, const Tensor& b) {
  // YOUR CODE
  throw NotDone();
}

D2L_ANSWER("be_the_compiler", Shortened);

}  // namespace
}  // namespace d2l
