// Layers and a loss, with PyTorch's names, initial values and text.
//
//   nn::Sequential net(nn::Linear(512, 256), nn::ReLU(), nn::Linear(256, 2));
//   Tensor y = net(Randn({8, 512}));  // of shape (8, 2)
//   std::cout << net;
//   // Sequential(
//   //   (0): Linear(in_features=512, out_features=256, bias=True)
//   //   (1): ReLU()
//   //   (2): Linear(in_features=256, out_features=2, bias=True)
//   // )
//
//   nn::Sequential net(nn::Conv2d(1, 20, /*kernel_size=*/3),
//                      nn::BatchNorm2d(20), nn::ReLU(), nn::MaxPool2d(2),
//                      nn::GlobalAvgPool2d(), nn::Flatten());
//   Tensor y = net(Randn({8, 1, 28, 28}));  // of shape (8, 20)
//
//   Tensor logits = net(images);  // of shape (n, classes)
//   Tensor loss = nn::CrossEntropyLoss(logits, labels);  // one number
//
// Ownership, thread-safety and errors: see module.h.

#ifndef D2L_COMMON_NN_LAYERS_H_
#define D2L_COMMON_NN_LAYERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/nn/module.h"
#include "common/ops/nn/functional.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l::nn {

// x @ weight.T + bias, for x of shape (*, in_features).
class Linear : public Module {
 public:
  // The parameters are float32, uniform in ±1/sqrt(in_features), from the
  // device's generator. Throws std::invalid_argument for negative sizes.
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias = true,
         Device device = Device());
  Linear(std::int64_t in_features, std::int64_t out_features, Device device)
      : Linear(in_features, out_features, /*bias=*/true, device) {}

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "Linear"; }
  std::string ExtraRepr() const override;
  void Members(MemberVisitor& visitor) override;
  std::unique_ptr<Module> New() const override;

  // (out_features, in_features). Assign to it to replace the tensor, or write
  // into its memory in place.
  Tensor& weight() { return weight_; }
  // (out_features); undefined if there is none.
  Tensor& bias() { return bias_; }

 private:
  std::int64_t in_features_;
  std::int64_t out_features_;
  Tensor weight_;
  Tensor bias_;
};

class ReLU : public Module {  // NOLINT(readability-identifier-naming)
 public:
  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "ReLU"; }
  std::unique_ptr<Module> New() const override {
    return std::make_unique<ReLU>();
  }
};

// In training mode each element is 0 with the probability p, and else divided
// by 1 - p; otherwise the result is x itself. With the same seed, cpu:0 and
// cpu:1 drop different elements; cpu:0 and cuda:0 drop the same.
class Dropout : public Module {
 public:
  // Throws std::invalid_argument unless p is from 0 to 1.
  explicit Dropout(double p = 0.5);

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "Dropout"; }
  std::string ExtraRepr() const override;
  std::unique_ptr<Module> New() const override;

 private:
  double p_;
};

// Joins all dimensions but the first.
class Flatten : public Module {
 public:
  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "Flatten"; }
  std::string ExtraRepr() const override;
  std::unique_ptr<Module> New() const override {
    return std::make_unique<Flatten>();
  }
};

// Runs its modules one after the other. They are named "0", "1", ….
class Sequential : public Module {
 public:
  // In C++, Sequential(Sequential(…)) is only the inner one: use Append.
  template <
      typename... Modules,
      typename = std::enable_if_t<(std::is_base_of_v<Module, Modules> && ...)>>
  explicit Sequential(Modules... modules) {
    (Append(std::move(modules)), ...);
  }

  template <typename M>
  void Append(M module) {
    AddModule(std::to_string(children_.size()),
              std::make_unique<M>(std::move(module)));
  }
  // Modules within modules, at most: the functions of a module call those of
  // its children.
  static constexpr int kMaxDepth = 1000;
  // Adds a module under the name. Throws std::invalid_argument if that is
  // empty, has a dot, or is in use, or if this would be more than kMaxDepth
  // modules deep.
  void AddModule(const std::string& name, std::unique_ptr<Module> module);

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "Sequential"; }
  void Members(MemberVisitor& visitor) override;
  std::unique_ptr<Module> New() const override;

  int size() const { return static_cast<int>(children_.size()); }
  Module& operator[](int i) { return *children_[i].second; }

 private:
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> children_;
  std::set<std::string> names_;  // of the children
};

// ---- Layers for images, of shape (batch, channels, height, width).

class Conv2d : public Module {
 public:
  // The parameters are float32, uniform in ±1/sqrt(in_channels * kernel_height
  // * kernel_width), from the device's generator. options: {stride, padding}.
  Conv2d(std::int64_t in_channels, std::int64_t out_channels,
         Size2d kernel_size, const Conv2dOptions& options = {},
         bool bias = true, Device device = Device());

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "Conv2d"; }
  std::string ExtraRepr() const override;
  void Members(MemberVisitor& visitor) override;
  std::unique_ptr<Module> New() const override;

 private:
  Size2d kernel_size_;
  Conv2dOptions options_;
  Tensor weight_;  // (out_channels, in_channels, height, width)
  Tensor bias_;    // (out_channels); undefined if there is none
};

// The common part of the two pools.
class Pool2d : public Module {
 public:
  // The default stride is the kernel's size.
  explicit Pool2d(Size2d kernel_size,
                  std::optional<Size2d> stride = std::nullopt,
                  Size2d padding = 0)
      : kernel_size_(kernel_size),
        stride_(stride.value_or(kernel_size)),
        padding_(padding) {}

  std::string ExtraRepr() const override;

 protected:
  Size2d kernel_size_, stride_, padding_;
};

// The mean of each window, in which the padding counts as zeros.
class AvgPool2d : public Pool2d {
 public:
  using Pool2d::Pool2d;

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "AvgPool2d"; }
  std::unique_ptr<Module> New() const override;
};

// The largest element of each window.
class MaxPool2d : public Pool2d {
 public:
  using Pool2d::Pool2d;

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "MaxPool2d"; }
  std::string ExtraRepr() const override;
  std::unique_ptr<Module> New() const override;
};

// The mean of each image: (batch, channels, 1, 1). PyTorch calls it
// AdaptiveAvgPool2d(output_size=1).
class GlobalAvgPool2d : public Module {
 public:
  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "GlobalAvgPool2d"; }
  std::unique_ptr<Module> New() const override {
    return std::make_unique<GlobalAvgPool2d>();
  }
};

// In training mode each channel is normalised by its mean and variance in the
// batch, which also update the running ones; otherwise by the running ones. In
// training mode it throws std::invalid_argument for a batch with one value per
// channel.
class BatchNorm2d : public Module {
 public:
  explicit BatchNorm2d(std::int64_t num_features, double eps = 1e-5,
                       double momentum = 0.1, Device device = Device());

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "BatchNorm2d"; }
  std::string ExtraRepr() const override;
  void Members(MemberVisitor& visitor) override;
  std::unique_ptr<Module> New() const override;

 private:
  double eps_, momentum_;
  Tensor weight_, bias_;               // ones, zeros
  Tensor running_mean_, running_var_;  // zeros, ones
  Tensor num_batches_tracked_;         // int64
};

// The residual block of the book: relu(f(x) + x), where f is two 3×3
// convolutions, each followed by a batch normalisation, and a ReLU between the
// two. With use_1x1conv, x goes through a 1×1 convolution, which other numbers
// of channels and strides need.
class Residual : public Module {
 public:
  Residual(std::int64_t input_channels, std::int64_t num_channels,
           bool use_1x1conv = false, std::int64_t strides = 1,
           Device device = Device());

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "Residual"; }
  void Members(MemberVisitor& visitor) override;
  std::unique_ptr<Module> New() const override;

 private:
  std::int64_t input_channels_, num_channels_, strides_;
  Conv2d conv1_, conv2_;
  std::unique_ptr<Conv2d> conv3_;  // null without use_1x1conv
  BatchNorm2d bn1_, bn2_;
};

// ---- Losses

enum class Reduction { kMean, kSum, kNone };

// -log(softmax(logits)[label]) of each of n samples: their mean, their sum, or
// all of them. logits: (n, classes), float32 or float64; labels: (n), int64.
Tensor CrossEntropyLoss(const Tensor& logits, const Tensor& labels,
                        Reduction reduction = Reduction::kMean,
                        SourceLocation at = SourceLocation::Current());

}  // namespace d2l::nn

#endif  // D2L_COMMON_NN_LAYERS_H_
