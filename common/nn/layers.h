// Layers, with PyTorch's names, initial values and text.
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
// Ownership, thread-safety and errors: see module.h.

#ifndef D2L_COMMON_NN_LAYERS_H_
#define D2L_COMMON_NN_LAYERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/nn/module.h"
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

  // (out_features, in_features). Assign to it to replace it, or write into its
  // memory in place.
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

// In training each element is 0 with the probability p, and else divided by
// 1 - p; otherwise x itself. With one seed cpu:0 and cpu:1 drop other elements;
// cpu:0 and cuda:0 drop the same.
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

// All dimensions but the first in one.
class Flatten : public Module {
 public:
  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "Flatten"; }
  std::string ExtraRepr() const override;
  std::unique_ptr<Module> New() const override {
    return std::make_unique<Flatten>();
  }
};

// Its modules one after the other. They are called "0", "1", ….
class Sequential : public Module {
 public:
  // Sequential(Sequential(…)) is no more than the inner one, as C++ has it: use
  // Append.
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
  // With a name of its own. Throws std::invalid_argument if that is empty, has
  // a dot, or is there already.
  void AddModule(const std::string& name, std::unique_ptr<Module> module);

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "Sequential"; }
  void Members(MemberVisitor& visitor) override;
  std::unique_ptr<Module> New() const override;

  int size() const { return static_cast<int>(children_.size()); }
  Module& operator[](int i) { return *children_[i].second; }

 private:
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> children_;
};

}  // namespace d2l::nn

namespace d2l::internal {
// A first value for a parameter: uniform in ±bound.
Tensor UniformIn(double bound, const Shape& shape, Device device);
// 1 / sqrt(fan_in): PyTorch's bound for weights and biases; 0 for 0.
double BoundOf(std::int64_t fan_in);
// The line that called the network; `here` if Forward was called without one.
SourceLocation Caller(SourceLocation here = SourceLocation::Current());
}  // namespace d2l::internal

#endif  // D2L_COMMON_NN_LAYERS_H_
