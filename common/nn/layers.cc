#include "common/nn/layers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/source_location.h"
#include "common/ops/copy.h"
#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/ops/matmul.h"
#include "common/ops/nn/functional.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/record.h"
#include "common/ops/reduction.h"
#include "common/ops/views.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace d2l::nn {
namespace {

// An initial value of a parameter: uniform in ±bound. A clone copies its own.
Tensor UniformIn(double bound, const Shape& shape, Device device) {
  if (internal::IsCloning()) return Empty(shape, device);
  return Rand(shape, device) * (2 * bound) - bound;
}

// 1 / sqrt(fan_in): PyTorch's bound for weights and biases; 0 for 0.
double BoundOf(std::int64_t fan_in) {
  return fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
}

// The line that called the network; `at` if Forward was called without one.
SourceLocation Caller(SourceLocation at = SourceLocation::Current()) {
  const SourceLocation by = internal::op_context.requested_by;
  return by.known() ? by : at;
}

bool operator==(Size2d a, Size2d b) {
  return a.height == b.height && a.width == b.width;
}

// A tuple as Python prints it.
std::string Tuple(Size2d size) {
  return absl::StrFormat("(%d, %d)", size.height, size.width);
}

// The argument of PyTorch's pools: one number, if both are the same.
std::string Given(Size2d size) {
  return size.height == size.width ? absl::StrCat(size.height) : Tuple(size);
}

void CheckImages(const Module& module, const Tensor& x) {
  if (x.defined() && x.dim() == 4) return;
  throw std::invalid_argument(absl::StrFormat(
      "[%s] expected 4D input, (batch, channels, height, width); got %s; "
      "requested at %s",
      module.Name(), x.defined() ? x.Describe() : "an undefined tensor",
      Caller().ToString()));
}

}  // namespace

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool bias,
               Device device)
    : in_features_(in_features), out_features_(out_features) {
  const double bound = BoundOf(in_features);
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
        Caller().ToString()));
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
  // Not -1, which an empty batch would leave undetermined.
  std::int64_t rest = 1;
  for (int i = 1; i < x.dim(); ++i) rest *= x.size(i);
  return x.dim() == 1 ? x : Reshape(x, {x.size(0), rest});
}

std::string Flatten::ExtraRepr() const { return "start_dim=1, end_dim=-1"; }

void Sequential::AddModule(const std::string& name,
                           std::unique_ptr<Module> module) {
  struct : MemberVisitor {
    void Child(std::string_view, Module& child) override {
      ++depth;
      deepest = std::max(deepest, depth);
      child.Members(*this);
      --depth;
    }
    int depth = 1, deepest = 1;
  } levels;
  module->Members(levels);
  if (levels.deepest >= kMaxDepth) {
    throw std::invalid_argument(absl::StrFormat(
        "[Sequential] this would be modules within modules, %d deep; %d is the "
        "most, so that a program's stack is enough for them. Append the layers "
        "to one Sequential",
        levels.deepest + 1, kMaxDepth));
  }
  const bool valid = !name.empty() && name.find('.') == name.npos;
  if (!valid || !names_.insert(name).second) {
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

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels,
               Size2d kernel_size, const Conv2dOptions& options, bool bias,
               Device device)
    : kernel_size_(kernel_size), options_(options) {
  const double bound =
      BoundOf(in_channels * kernel_size.height * kernel_size.width);
  weight_ = UniformIn(
      bound, {out_channels, in_channels, kernel_size.height, kernel_size.width},
      device);
  if (bias) bias_ = UniformIn(bound, {out_channels}, device);
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

std::string Pool2d::ExtraRepr() const {
  return absl::StrFormat("kernel_size=%s, stride=%s, padding=%s",
                         Given(kernel_size_), Given(stride_), Given(padding_));
}

Tensor AvgPool2d::Forward(const Tensor& x) {
  return d2l::AvgPool2d(x, kernel_size_, stride_, padding_);
}

std::unique_ptr<Module> AvgPool2d::New() const {
  return std::make_unique<AvgPool2d>(kernel_size_, stride_, padding_);
}

Tensor MaxPool2d::Forward(const Tensor& x) {
  return d2l::MaxPool2d(x, kernel_size_, stride_, padding_);
}

std::string MaxPool2d::ExtraRepr() const {
  return Pool2d::ExtraRepr() + ", dilation=1, ceil_mode=False";
}

std::unique_ptr<Module> MaxPool2d::New() const {
  return std::make_unique<MaxPool2d>(kernel_size_, stride_, padding_);
}

Tensor GlobalAvgPool2d::Forward(const Tensor& x) {
  CheckImages(*this, x);
  return Mean(x, {2, 3}, /*keepdim=*/true);
}

BatchNorm2d::BatchNorm2d(std::int64_t num_features, double eps, double momentum,
                         Device device)
    : eps_(eps),
      momentum_(momentum),
      weight_(Ones({num_features}, device)),
      bias_(Zeros({num_features}, device)),
      running_mean_(Zeros({num_features}, device)),
      running_var_(Ones({num_features}, device)),
      num_batches_tracked_(Zeros({}, device, DType::kInt64)) {}

Tensor BatchNorm2d::Forward(const Tensor& x) {
  CheckImages(*this, x);
  Tensor y = BatchNorm(x, weight_, bias_, running_mean_, running_var_,
                       training(), momentum_, eps_);
  if (training()) {
    const NoGradGuard no_grad;
    num_batches_tracked_ += 1;
  }
  return y;
}

std::string BatchNorm2d::ExtraRepr() const {
  return absl::StrFormat(
      "%d, eps=%g, momentum=%g, affine=True, track_running_stats=True",
      weight_.size(0), eps_, momentum_);
}

void BatchNorm2d::Members(MemberVisitor& visitor) {
  visitor.Parameter("weight", weight_);
  visitor.Parameter("bias", bias_);
  visitor.Buffer("running_mean", running_mean_);
  visitor.Buffer("running_var", running_var_);
  visitor.Buffer("num_batches_tracked", num_batches_tracked_);
}

std::unique_ptr<Module> BatchNorm2d::New() const {
  return std::make_unique<BatchNorm2d>(weight_.size(0), eps_, momentum_,
                                       weight_.device());
}

Residual::Residual(std::int64_t input_channels, std::int64_t num_channels,
                   bool use_1x1conv, std::int64_t strides, Device device)
    : input_channels_(input_channels),
      num_channels_(num_channels),
      strides_(strides),
      conv1_(input_channels, num_channels, 3, {strides, 1}, true, device),
      conv2_(num_channels, num_channels, 3, {1, 1}, true, device),
      bn1_(num_channels, 1e-5, 0.1, device),
      bn2_(num_channels, 1e-5, 0.1, device) {
  if (use_1x1conv) {
    conv3_ = std::make_unique<Conv2d>(input_channels, num_channels, 1,
                                      Conv2dOptions{strides, 0}, true, device);
  }
}

Tensor Residual::Forward(const Tensor& x) {
  const Tensor y =
      bn2_.Forward(conv2_.Forward(Relu(bn1_.Forward(conv1_.Forward(x)))));
  return Relu(y + (conv3_ == nullptr ? x : conv3_->Forward(x)));
}

void Residual::Members(MemberVisitor& visitor) {
  visitor.Child("conv1", conv1_);
  visitor.Child("conv2", conv2_);
  if (conv3_ != nullptr) visitor.Child("conv3", *conv3_);
  visitor.Child("bn1", bn1_);
  visitor.Child("bn2", bn2_);
}

std::unique_ptr<Module> Residual::New() const {
  return std::make_unique<Residual>(input_channels_, num_channels_,
                                    conv3_ != nullptr, strides_,
                                    nn::Parameters(conv1_)[0].device());
}

Tensor CrossEntropyLoss(const Tensor& logits, const Tensor& labels,
                        Reduction reduction, SourceLocation at) {
  CheckDefined("CrossEntropyLoss", logits, at);
  CheckDefined("CrossEntropyLoss", labels, at);
  const RequestedBy by(at);
  const Tensor losses = CrossEntropy(logits, labels, at);
  switch (reduction) {
    case Reduction::kMean:
      return Mean(losses, {}, /*keepdim=*/false, at);
    case Reduction::kSum:
      return Sum(losses, {}, /*keepdim=*/false, at);
    case Reduction::kNone:
      break;
  }
  return losses;
}

}  // namespace d2l::nn
