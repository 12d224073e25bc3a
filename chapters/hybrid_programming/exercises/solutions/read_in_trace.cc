// read_in_trace: a check that a program can carry.
//
//   bazel run //:exercises -- read_in_trace

#include <vector>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// {the square root of each element, how many elements are negative}, the count
// as a float32 tensor of one element. Eagerly one would write
//
//   if (Item(Sum(x < 0)) > 0) throw std::runtime_error("negative");
//   return Sqrt(x);
//
// but that reads a value, which a program that is being traced cannot.
std::vector<Tensor> CheckedSqrt(const Tensor& x) {
  // SOLUTION
  const Tensor negative = Where(x < 0, OnesLike(x), ZerosLike(x));
  return {Sqrt(x), Sum(negative)};
  // END
}

D2L_ANSWER("read_in_trace", CheckedSqrt);

}  // namespace
}  // namespace d2l
