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
// Members lists each member once; names, counts, printing, moving to a device,
// state dicts and clones follow from it.
//
// Tied weights are one tensor under two names: decoder.weight() =
// encoder.weight(). It is one parameter, with one gradient and one momentum; To
// and Clone keep the tie, and a state dict has both names.
//
// Ownership: a module owns its members. It moves but does not copy: a copy
// would share its parameters' memory, unnoticed; see Clone. Thread-safety: that
// of its members and of Forward; several threads may call the modules here
// while no thread replaces their parameters. Errors: Forward throws
// std::invalid_argument for an input that the module does not accept.

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

// Receives the members of a module, in the order in which they are printed. The
// names have no dots. A visitor may replace a tensor.
class MemberVisitor {
 public:
  virtual ~MemberVisitor() = default;
  virtual void Parameter(std::string_view /*name*/, Tensor& /*parameter*/) {}
  // A part of the state that is not trained, such as a running mean.
  virtual void Buffer(std::string_view /*name*/, Tensor& /*buffer*/) {}
  // Unless overridden, visits the child's members.
  virtual void Child(std::string_view name, Module& child);
};

class Module {
 public:
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Tensor Forward(const Tensor& x) = 0;
  // The class, an identifier: "Linear". A traced program has this name, too.
  virtual std::string Name() const = 0;
  // Further text between the brackets in print (PyTorch's extra_repr).
  virtual std::string ExtraRepr() const { return ""; }
  virtual void Members(MemberVisitor&) {}
  // A module of the same structure, made as this one was,
  // std::make_unique<Mlp>(). Clone then copies this one's values to it. Unless
  // overridden it throws std::logic_error.
  virtual std::unique_ptr<Module> New() const;

  // Sets training mode, in which a module starts, for it and its children. Some
  // modules compute something else in it.
  virtual void Train(bool mode);
  void Train() { Train(true); }
  void Eval() { Train(false); }
  bool training() const { return training_; }

  // Runs Forward. Errors and profiles name this line, too.
  Tensor operator()(const Tensor& x,
                    SourceLocation at = SourceLocation::Current());

 protected:
  Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

 private:
  bool training_ = true;
};

// Handles to the parameters, with PyTorch's names: "0.weight". Each tensor
// once, under its first name. Throws std::invalid_argument for parameters that
// share memory and are not the same tensor.
std::vector<std::pair<std::string, Tensor>> NamedParameters(
    const Module& module);
std::vector<std::pair<std::string, Tensor>> NamedBuffers(const Module& module);
// Both: each module's parameters, then its buffers, then its children's, under
// all their names.
std::vector<std::pair<std::string, Tensor>> NamedState(const Module& module);
// The parameters of NamedParameters, and the number of their elements.
std::vector<Tensor> Parameters(const Module& module);
std::int64_t NumParameters(const Module& module);

// Replaces the parameters and buffers on other devices by copies on the device.
void To(Module& module, Device device);
// Replaces floating-point parameters and buffers of other dtypes by copies of
// this dtype.
void To(Module& module, DType dtype);

// A new module with the same values, on the device; in training mode if this
// one is (copy.deepcopy). Throws std::logic_error for a module without New.
std::unique_ptr<Module> Clone(const Module& module, Device device);

// Sets the modules of `to`, which has the structure of `from`, in training mode
// if those of `from` are.
void CopyModes(const Module& from, Module& to);

// Calls the function with the module's descendants, children before their
// parents, and then with itself (torch.nn.Module.apply).
void Apply(Module& module, const std::function<void(Module&)>& function);

// Initial values (torch.nn.init): weights, the parameters of two or more
// dimensions, are drawn from the generators of their devices; biases become 0;
// others, such as the scale of a normalisation, stay. The values are written in
// place, and no tape records it. InitNormal draws normal numbers of mean 0.
void InitNormal(Module& module, double standard_deviation);
// Draws uniform numbers in ±sqrt(6 / (fan_in + fan_out)).
void InitXavierUniform(Module& module);

// "Linear(in_features=2, out_features=1, bias=True)"; a module with children
// takes several lines, as PyTorch prints it.
std::string ToString(const Module& module);
std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace d2l::nn

namespace d2l::internal {
// Whether nn::Clone is making a module, whose initial values do not matter:
// layers then set none, and do not use the generator.
bool IsCloning();
}  // namespace d2l::internal

#endif  // D2L_COMMON_NN_MODULE_H_
