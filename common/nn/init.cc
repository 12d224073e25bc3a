#include "common/nn/init.h"

#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "common/autograd/tape.h"
#include "common/ops/copy.h"
#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/tensor/tensor.h"

namespace d2l::nn {
namespace {

template <typename Draw>
void Init(Module& module, const Draw& draw) {
  const NoGradGuard no_grad;
  for (const auto& [name, parameter] : NamedParameters(module)) {
    if (parameter.dim() >= 2) {
      CopyTo(draw(parameter), parameter);
    } else if (name == "bias" || absl::EndsWith(name, ".bias")) {
      CopyTo(ZerosLike(parameter), parameter);
    }
  }
}

}  // namespace

void InitNormal(Module& module, double standard_deviation) {
  Init(module, [&](const Tensor& weight) {
    return RandnLike(weight) * standard_deviation;
  });
}

void InitXavierUniform(Module& module) {
  Init(module, [](const Tensor& weight) {
    // (out, in), or (out, in, height, width) of a convolution.
    double window = 1;
    for (int i = 2; i < weight.dim(); ++i) {
      window *= static_cast<double>(weight.size(i));
    }
    const double fans =
        window * static_cast<double>(weight.size(0) + weight.size(1));
    const double bound = fans > 0 ? std::sqrt(6 / fans) : 0;
    return RandLike(weight) * (2 * bound) - bound;
  });
}

}  // namespace d2l::nn
