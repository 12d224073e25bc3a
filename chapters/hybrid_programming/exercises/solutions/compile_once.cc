// compile_once: compile a net, and call it.
//
//   bazel run //:exercises -- compile_once

#include <utility>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// net(x) for each x of xs, which all have the same shape. The net's statements
// run at most once, in the first call; then its compiled program runs.
std::vector<Tensor> CallAll(nn::Sequential net, const std::vector<Tensor>& xs) {
  std::vector<Tensor> results;
  // SOLUTION
  nn::Hybrid compiled = nn::Hybridize(std::move(net));
  for (const Tensor& x : xs) results.push_back(compiled(x));
  // END
  return results;
}

D2L_ANSWER("compile_once", CallAll);

}  // namespace
}  // namespace d2l
