#include "common/nn/sgd.h"

#include <cstddef>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/autograd/tape.h"
#include "common/ops/copy.h"
#include "common/ops/elementwise.h"
#include "common/ops/primitive.h"

namespace d2l::nn {

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : parameters_(std::move(parameters)),
      options_(options),
      momentum_buffers_(parameters_.size()) {}

void SGD::Step(absl::Span<const Tensor> gradients, SourceLocation at) {
  if (gradients.size() != parameters_.size()) {
    throw std::invalid_argument(absl::StrFormat(
        "[SGD] a gradient for each of %d parameters wanted; got %d; requested "
        "at %s",
        parameters_.size(), gradients.size(), at.ToString()));
  }
  // Before any parameter is changed.
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    CheckDefined("SGD", gradients[i], at);
    if (gradients[i].Describe() == parameters_[i].Describe()) continue;
    throw std::invalid_argument(absl::StrFormat(
        "[SGD] gradient %d is %s, its parameter %s; requested at %s", i,
        gradients[i].Describe(), parameters_[i].Describe(), at.ToString()));
  }
  const NoGradGuard guard;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Tensor& parameter = parameters_[i];
    Tensor step = gradients[i];
    if (options_.weight_decay != 0) {
      step = Operand(step, at) +
             Operand(parameter, at) * Operand(options_.weight_decay, at);
    }
    if (options_.momentum != 0) {
      Tensor& buffer = momentum_buffers_[i];
      if (buffer.defined()) {
        buffer *= Operand(options_.momentum, at);
        buffer += Operand(step, at);
      } else {
        buffer = Clone(step, at);
      }
      step = buffer;
    }
    parameter -= Operand(Operand(step, at) * options_.lr, at);
  }
}

}  // namespace d2l::nn
