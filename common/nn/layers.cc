#include "common/nn/layers.h"

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "absl/strings/str_format.h"
#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/ops/matmul.h"
#include "common/ops/record.h"
#include "common/ops/views.h"

namespace d2l::nn {
namespace {

Tensor UniformIn(double bound, const Shape& shape, Device device) {
  return Rand(shape, device) * (2 * bound) - bound;
}

}  // namespace

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool bias,
               Device device)
    : in_features_(in_features), out_features_(out_features) {
  const double bound =
      in_features > 0 ? 1 / std::sqrt(static_cast<double>(in_features)) : 0;
  weight_ = UniformIn(bound, {out_features, in_features}, device);
  if (bias) bias_ = UniformIn(bound, {out_features}, device);
}

Tensor Linear::Forward(const Tensor& x) {
  if (!x.defined() || x.dim() == 0 || x.size(x.dim() - 1) != in_features_ ||
      x.dtype() != weight_.dtype() || x.device() != weight_.device()) {
    throw std::invalid_argument(absl::StrFormat(
        "[Linear] %s takes a %s tensor of shape (*, %d) on %s, its weight's "
        "dtype and device; got %s; convert and move with To, change the shape "
        "with Reshape; requested at %s",
        ToString(*this), DTypeName(weight_.dtype()), in_features_,
        weight_.device().ToString(),
        x.defined() ? x.Describe() : "an undefined tensor",
        internal::op_context.requested_by.ToString()));
  }
  const Tensor y = MatMul(x, T(weight_));
  return bias_.defined() ? y + bias_ : y;
}

std::string Linear::ExtraRepr() const {
  return absl::StrFormat("in_features=%d, out_features=%d, bias=%s",
                         in_features_, out_features_,
                         bias_.defined() ? "True" : "False");
}

void Linear::Members(MemberVisitor& visitor) {
  visitor.Parameter("weight", weight_);
  if (bias_.defined()) visitor.Parameter("bias", bias_);
}

Tensor ReLU::Forward(const Tensor& x) { return Relu(x); }

Tensor Sequential::Forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& [name, child] : children_) y = child->Forward(y);
  return y;
}

void Sequential::Members(MemberVisitor& visitor) {
  for (const auto& [name, child] : children_) visitor.Child(name, *child);
}

}  // namespace d2l::nn
