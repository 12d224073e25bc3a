#include <cstddef>
#include <utility>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

namespace not_compiled {
std::vector<Tensor> CallAll(nn::Sequential net, const std::vector<Tensor>& xs) {
  std::vector<Tensor> results;
  for (const Tensor& x : xs) results.push_back(net(x));
  return results;
}
}  // namespace not_compiled

namespace compiles_in_the_loop {
std::vector<Tensor> CallAll(nn::Sequential net, const std::vector<Tensor>& xs) {
  std::vector<Tensor> results;
  for (const Tensor& x : xs) {
    nn::Hybrid compiled = nn::Hybridize(std::move(net));
    results.push_back(compiled(x));
  }
  return results;
}
}  // namespace compiles_in_the_loop

namespace one_result_for_all {
std::vector<Tensor> CallAll(nn::Sequential net, const std::vector<Tensor>& xs) {
  if (xs.empty()) return {};
  nn::Hybrid compiled = nn::Hybridize(std::move(net));
  return std::vector<Tensor>(xs.size(), compiled(xs[0]));
}
}  // namespace one_result_for_all

namespace first_call_is_lost {
std::vector<Tensor> CallAll(nn::Sequential net, const std::vector<Tensor>& xs) {
  std::vector<Tensor> results;
  nn::Hybrid compiled = nn::Hybridize(std::move(net));
  if (!xs.empty()) compiled(xs[0]);  // traces it
  for (std::size_t i = 1; i < xs.size(); ++i) {
    results.push_back(compiled(xs[i]));
  }
  return results;
}
}  // namespace first_call_is_lost

namespace all_in_one {
std::vector<Tensor> CallAll(nn::Sequential net, const std::vector<Tensor>& xs) {
  return xs.empty() ? xs : Split(net(Cat(xs)), 2);
}
}  // namespace all_in_one

D2L_MISTAKE("compile_once", not_compiled, CallAll, "statements ran 5 times");
D2L_MISTAKE("compile_once", compiles_in_the_loop, CallAll,
            "This result is x itself");
D2L_MISTAKE("compile_once", one_result_for_all, CallAll,
            "Each x has a result of its own");
D2L_MISTAKE("compile_once", first_call_is_lost, CallAll,
            "one result for each x");
D2L_MISTAKE("compile_once", all_in_one, CallAll,
            "With all xs joined into one input");

}  // namespace
}  // namespace d2l
