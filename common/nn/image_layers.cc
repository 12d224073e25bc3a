#include "common/nn/image_layers.h"

#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/ops/nn/pooling.h"
#include "common/ops/record.h"
#include "common/ops/reduction.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace d2l::nn {
namespace {

bool operator==(Size2d a, Size2d b) {
  return a.height == b.height && a.width == b.width;
}

// As Python prints a tuple.
std::string Tuple(Size2d size) {
  return absl::StrFormat("(%d, %d)", size.height, size.width);
}

// As it was given to PyTorch's pools: one number, if both are the same.
std::string Given(Size2d size) {
  return size.height == size.width ? absl::StrCat(size.height) : Tuple(size);
}

std::string PoolRepr(Size2d kernel_size, Size2d stride, Size2d padding) {
  return absl::StrFormat("kernel_size=%s, stride=%s, padding=%s",
                         Given(kernel_size), Given(stride), Given(padding));
}

void CheckImages(const Module& module, const Tensor& x) {
  if (x.defined() && x.dim() == 4) return;
  throw std::invalid_argument(absl::StrFormat(
      "[%s] expected 4D input, (batch, channels, height, width); got %s; "
      "requested at %s",
      module.Name(), x.defined() ? x.Describe() : "an undefined tensor",
      internal::op_context.requested_by.ToString()));
}

}  // namespace

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels,
               Size2d kernel_size, const Conv2dOptions& options, bool bias,
               Device device)
    : kernel_size_(kernel_size), options_(options) {
  const double bound =
      internal::BoundOf(in_channels * kernel_size.height * kernel_size.width);
  weight_ = internal::UniformIn(
      bound, {out_channels, in_channels, kernel_size.height, kernel_size.width},
      device);
  if (bias) bias_ = internal::UniformIn(bound, {out_channels}, device);
}

Tensor Conv2d::Forward(const Tensor& x) {
  return d2l::Conv2d(x, weight_, bias_, options_);
}

std::string Conv2d::ExtraRepr() const {
  std::string text = absl::StrFormat(
      "%d, %d, kernel_size=%s, stride=%s", weight_.size(1), weight_.size(0),
      Tuple(kernel_size_), Tuple(options_.stride));
  if (!(options_.padding == Size2d(0))) {
    absl::StrAppend(&text, ", padding=", Tuple(options_.padding));
  }
  if (!bias_.defined()) absl::StrAppend(&text, ", bias=False");
  return text;
}

void Conv2d::Members(MemberVisitor& visitor) {
  visitor.Parameter("weight", weight_);
  if (bias_.defined()) visitor.Parameter("bias", bias_);
}

std::unique_ptr<Module> Conv2d::New() const {
  return std::make_unique<Conv2d>(weight_.size(1), weight_.size(0),
                                  kernel_size_, options_, bias_.defined(),
                                  weight_.device());
}

AvgPool2d::AvgPool2d(Size2d kernel_size, absl::optional<Size2d> stride,
                     Size2d padding)
    : kernel_size_(kernel_size),
      stride_(stride.value_or(kernel_size)),
      padding_(padding) {}

Tensor AvgPool2d::Forward(const Tensor& x) {
  return d2l::AvgPool2d(x, kernel_size_, stride_, padding_);
}

std::string AvgPool2d::ExtraRepr() const {
  return PoolRepr(kernel_size_, stride_, padding_);
}

std::unique_ptr<Module> AvgPool2d::New() const {
  return std::make_unique<AvgPool2d>(kernel_size_, stride_, padding_);
}

MaxPool2d::MaxPool2d(Size2d kernel_size, absl::optional<Size2d> stride,
                     Size2d padding)
    : kernel_size_(kernel_size),
      stride_(stride.value_or(kernel_size)),
      padding_(padding) {}

Tensor MaxPool2d::Forward(const Tensor& x) {
  return d2l::MaxPool2d(x, kernel_size_, stride_, padding_);
}

std::string MaxPool2d::ExtraRepr() const {
  return PoolRepr(kernel_size_, stride_, padding_) +
         ", dilation=1, ceil_mode=False";
}

std::unique_ptr<Module> MaxPool2d::New() const {
  return std::make_unique<MaxPool2d>(kernel_size_, stride_, padding_);
}

Tensor GlobalAvgPool2d::Forward(const Tensor& x) {
  CheckImages(*this, x);
  return Mean(x, {2, 3}, /*keepdim=*/true);
}

std::unique_ptr<Module> GlobalAvgPool2d::New() const {
  return std::make_unique<GlobalAvgPool2d>();
}

}  // namespace d2l::nn
