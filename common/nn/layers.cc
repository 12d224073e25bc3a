#include "common/nn/layers.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/base/source_location.h"
#include "common/ops/copy.h"
#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/ops/matmul.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/record.h"
#include "common/ops/views.h"
#include "common/tensor/dtype.h"

namespace d2l::internal {

Tensor UniformIn(double bound, const Shape& shape, Device device) {
  if (IsCloning()) return Empty(shape, device);
  return Rand(shape, device) * (2 * bound) - bound;
}

double BoundOf(std::int64_t fan_in) {
  return fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
}

SourceLocation Caller(SourceLocation here) {
  return op_context.requested_by.known() ? op_context.requested_by : here;
}

}  // namespace d2l::internal

namespace d2l::nn {
Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool bias,
               Device device)
    : in_features_(in_features), out_features_(out_features) {
  const double bound = internal::BoundOf(in_features);
  weight_ = internal::UniformIn(bound, {out_features, in_features}, device);
  if (bias) bias_ = internal::UniformIn(bound, {out_features}, device);
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
        internal::Caller().ToString()));
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

std::unique_ptr<Module> Linear::New() const {
  return std::make_unique<Linear>(in_features_, out_features_, bias_.defined(),
                                  weight_.device());
}

Tensor ReLU::Forward(const Tensor& x) { return Relu(x); }

Dropout::Dropout(double p) : p_(p) {
  if (p >= 0 && p <= 1) return;
  throw std::invalid_argument(absl::StrFormat(
      "[Dropout] p, the probability to drop an element, is from 0 to 1; got %g",
      p));
}

Tensor Dropout::Forward(const Tensor& x) {
  if (!training() || p_ == 0) return x;
  const auto at = SourceLocation::Current();
  CheckDefined("Dropout", x, at);
  const Tensor uniform = d2l::Apply(
      RandomPrimitive(kernels::RandomOp::kUniform,
                      {x.shape(), DType::kFloat32, x.device()}, /*low=*/0,
                      /*high=*/1, /*per_device=*/true),
      {}, at);
  const double scale = p_ < 1 ? 1 / (1 - p_) : 0;
  return x * (d2l::To(uniform >= p_, x.dtype()) * scale);
}

std::string Dropout::ExtraRepr() const {
  return absl::StrFormat("p=%g, inplace=False", p_);
}

std::unique_ptr<Module> Dropout::New() const {
  return std::make_unique<Dropout>(p_);
}

Tensor Flatten::Forward(const Tensor& x) {
  const auto at = SourceLocation::Current();
  CheckDefined("Flatten", x, at);
  if (x.dim() == 0) return Reshape(x, {1});  // as in PyTorch
  // No -1, which an empty batch would leave open.
  std::int64_t rest = 1;
  for (int i = 1; i < x.dim(); ++i) rest *= x.size(i);
  return x.dim() == 1 ? x : Reshape(x, {x.size(0), rest});
}

std::string Flatten::ExtraRepr() const { return "start_dim=1, end_dim=-1"; }

void Sequential::AddModule(const std::string& name,
                           std::unique_ptr<Module> module) {
  bool valid = !name.empty() && name.find('.') == name.npos;
  for (const auto& [other, child] : children_) valid = valid && other != name;
  if (!valid) {
    throw std::invalid_argument(absl::StrFormat(
        "[Sequential] a module cannot be called \"%s\": a name has no dots, is "
        "not empty, and is not another module's",
        name));
  }
  children_.emplace_back(name, std::move(module));
}

Tensor Sequential::Forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& [name, child] : children_) y = child->Forward(y);
  return y;
}

void Sequential::Members(MemberVisitor& visitor) {
  for (const auto& [name, child] : children_) visitor.Child(name, *child);
}

std::unique_ptr<Module> Sequential::New() const {
  auto copy = std::make_unique<Sequential>();
  for (const auto& [name, child] : children_) {
    copy->AddModule(name, child->New());
  }
  return copy;
}

}  // namespace d2l::nn
