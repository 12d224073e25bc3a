// Module: a part of a network, with its parameters and the modules it is made
// of (torch.nn.Module).
//
//   class Mlp : public nn::Module {
//    public:
//     Tensor Forward(const Tensor& x) override {
//       return output_(Relu(hidden_(x)));
//     }
//     std::string Name() const override { return "Mlp"; }
//     void Members(nn::MemberVisitor& visitor) override {
//       visitor.Child("hidden", hidden_);
//       visitor.Child("output", output_);
//     }
//
//    private:
//     nn::Linear hidden_{20, 256};
//     nn::Linear output_{256, 10};
//   };
//   Mlp net;
//   Tensor y = net(Ones({2, 20}));
//   std::cout << net;                // as PyTorch prints it
//   nn::NamedParameters(net);        // "hidden.weight", "hidden.bias", …
//   nn::InitXavierUniform(net);      // its first values were PyTorch's
//   net.Eval();                      // for Dropout and BatchNorm2d, in it
//
// Members lists everything once; names, counts, printing, moving to a device,
// state dicts and clones follow from it.
//
// Ownership: a module owns its members. It moves but does not copy: a copy
// would share its parameters' memory, unseen; see Clone. Thread-safety: as of
// its members
// and of what Forward does; the modules here may be called on several threads
// while nobody replaces their parameters. Errors: Forward throws
// std::invalid_argument for an input that the module does not take.

#ifndef D2L_COMMON_NN_MODULE_H_
#define D2L_COMMON_NN_MODULE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor.h"

namespace d2l::nn {

class Module;

// Is shown what a module consists of, in the order in which it is printed. The
// names have no dots. It may replace a tensor.
class MemberVisitor {
 public:
  virtual ~MemberVisitor() = default;
  virtual void Parameter(std::string_view /*name*/, Tensor& /*parameter*/) {}
  // What belongs to the state but is not trained: a running mean.
  virtual void Buffer(std::string_view /*name*/, Tensor& /*buffer*/) {}
  // Unless overridden, it is shown what the child consists of.
  virtual void Child(std::string_view name, Module& child);
};

class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Tensor Forward(const Tensor& x) = 0;
  // The class, an identifier: "Linear". A program has this name, too.
  virtual std::string Name() const = 0;
  // What else stands between the brackets in print (PyTorch's extra_repr).
  virtual std::string ExtraRepr() const { return ""; }
  virtual void Members(MemberVisitor&) {}
  // A module of the same structure, for Clone, which then gives it this one's
  // values: make it as this one was made, std::make_unique<Mlp>(). Unless
  // overridden it throws std::logic_error.
  virtual std::unique_ptr<Module> New() const;

  // Whether it is being trained, and its children: at first it is. Some modules
  // compute something else then.
  virtual void Train(bool mode);
  void Train() { Train(true); }
  void Eval() { Train(false); }
  bool training() const { return training_; }

  // Forward, for which errors and profiles name this line, too.
  Tensor operator()(const Tensor& x,
                    SourceLocation at = SourceLocation::Current());

 protected:
  Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

 private:
  bool training_ = true;
};

// Handles to the parameters, with PyTorch's names: "0.weight".
std::vector<std::pair<std::string, Tensor>> NamedParameters(
    const Module& module);
std::vector<std::pair<std::string, Tensor>> NamedBuffers(const Module& module);
// Both: each module's parameters, then its buffers, then its children's.
std::vector<std::pair<std::string, Tensor>> NamedState(const Module& module);
// The same without the names.
std::vector<Tensor> Parameters(const Module& module);
std::int64_t NumParameters(const Module& module);

// Replaces the parameters and buffers that are elsewhere by copies on the
// device.
void To(Module& module, Device device);
// The same for the dtype of those that are floating-point.
void To(Module& module, DType dtype);

// A module of its own, with the same values, on the device; training if this
// one is (copy.deepcopy). Throws std::logic_error for a module without New.
std::unique_ptr<Module> Clone(const Module& module, Device device);

// Calls the function with the module's children, theirs first, and with itself
// (torch.nn.Module.apply).
void Apply(Module& module, const std::function<void(Module&)>& function);

// First values (torch.nn.init): weights, the parameters of two or more
// dimensions, are drawn from the generators of their devices; biases become 0;
// others, such as the scale of a normalisation, stay. They are written in
// place, and no tape notes it. Normal, with the mean 0:
void InitNormal(Module& module, double standard_deviation);
// Uniform in ±sqrt(6 / (fan_in + fan_out)).
void InitXavierUniform(Module& module);

// "Linear(in_features=2, out_features=1, bias=True)"; one with children on
// several lines, as PyTorch prints it.
std::string ToString(const Module& module);
std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace d2l::nn

namespace d2l::internal {
// Whether nn::Clone makes a module, whose first values do not matter: layers
// then leave them, and the generator, as they are.
bool IsCloning();
}  // namespace d2l::internal

#endif  // D2L_COMMON_NN_MODULE_H_
