#include "chapters/hybrid_programming/programs.h"

#include <utility>

#include "common/graph/passes/passes.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"

namespace d2l::hybrid {
namespace {

Tensor Add(const Tensor& a, const Tensor& b) { return a + b; }

}  // namespace

Tensor FancyFunc(const Tensor& a, const Tensor& b, const Tensor& c,
                 const Tensor& d) {
  const Tensor e = Add(a, b);
  const Tensor f = Add(c, d);
  Tensor g = Add(e, f);
  return g;
}

std::vector<Tensor> FancyFuncOf(const std::vector<Tensor>& abcd) {
  return {FancyFunc(abcd[0], abcd[1], abcd[2], abcd[3])};
}

nn::Sequential Mlp(std::int64_t n, Device device) {
  return nn::Sequential(nn::Linear(n, n / 2, device), nn::ReLU(),
                        nn::Linear(n / 2, n / 4, device), nn::ReLU(),
                        nn::Linear(n / 4, 2, device));
}

ir::TensorFunction ProductsOf(const nn::Module& mlp) {
  std::vector<Tensor> weights;
  for (const auto& [name, parameter] : nn::NamedParameters(mlp)) {
    if (parameter.dim() == 2) weights.push_back(parameter);
  }
  return [weights](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    Tensor y = in[0];
    for (const Tensor& weight : weights) y = MatMul(y, T(weight));
    return {y};
  };
}

std::vector<Tensor> Chain(int operations, const std::vector<Tensor>& in) {
  Tensor x = in[0];
  for (int i = 0; i < operations; ++i) x = i % 2 == 0 ? x + in[1] : x * 0.5;
  return {x};
}

ir::Graph TraceAndOptimize(const ir::TensorFunction& function,
                           const std::vector<Tensor>& inputs,
                           const char* name) {
  ir::Graph graph = ir::Trace(function, inputs, {name});
  ir::Optimize(graph);
  return graph;
}

}  // namespace d2l::hybrid
