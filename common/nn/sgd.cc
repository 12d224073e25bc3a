#include "common/nn/sgd.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "common/ops/copy.h"
#include "common/ops/elementwise.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/primitive.h"

namespace d2l::nn {

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : parameters_(std::move(parameters)),
      options_(options),
      momentum_buffers_(parameters_.size()) {
  absl::flat_hash_map<std::uint64_t, std::size_t> numbers;  // by id
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto [first, is_new] = numbers.insert({parameters_[i].id(), i});
    if (is_new || !parameters_[i].defined()) continue;
    throw std::invalid_argument(absl::StrFormat(
        "[SGD] parameter %d is the same tensor as parameter %d, and would be "
        "updated twice; give each once, as nn::Parameters does",
        i, first->second));
  }
}

void SGD::Step(absl::Span<const Tensor> gradients, SourceLocation at) {
  if (gradients.size() != parameters_.size()) {
    throw std::invalid_argument(absl::StrFormat(
        "[SGD] a gradient for each of %d parameters wanted; got %d; requested "
        "at %s",
        parameters_.size(), gradients.size(), at.ToString()));
  }
  // Checks all gradients before it changes a parameter.
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    CheckDefined("SGD", gradients[i], at);
    const Tensor &g = gradients[i], &parameter = parameters_[i];
    if (g.shape() == parameter.shape() && g.dtype() == parameter.dtype() &&
        g.device() == parameter.device()) {
      continue;
    }
    throw std::invalid_argument(absl::StrFormat(
        "[SGD] gradient %d is %s, its parameter %s; requested at %s", i,
        g.Describe(), parameter.Describe(), at.ToString()));
  }
  const NoGradGuard guard;
  if (options_.momentum == 0) {
    AxpbyInPlace(parameters_, -options_.lr, gradients,
                 1 - options_.lr * options_.weight_decay, at);
    return;
  }
  if (std::all_of(momentum_buffers_.begin(), momentum_buffers_.end(),
                  [](const Tensor& v) { return v.defined(); })) {
    AxpbyInPlace(momentum_buffers_, 1, gradients, options_.momentum, at);
  } else {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      Tensor& v = momentum_buffers_[i];
      if (v.defined()) {
        AxpbyInPlace(v, 1, gradients[i], options_.momentum, at);
      } else {
        v = Clone(gradients[i], at);
      }
    }
  }
  if (options_.weight_decay != 0) {
    AxpbyInPlace(momentum_buffers_, options_.weight_decay, parameters_, 1, at);
  }
  AxpbyInPlace(parameters_, -options_.lr, momentum_buffers_, 1, at);
}

}  // namespace d2l::nn
