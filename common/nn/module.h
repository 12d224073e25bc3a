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
//
// Members lists everything once; names, counts, printing, moving to a device
// and what will come (state dicts, cloning) follow from it.
//
// Ownership: a module owns its members. It moves but does not copy: a copy
// would share its parameters' memory, unseen. Thread-safety: as of its members
// and of what Forward does; the modules here may be called on several threads
// while nobody replaces their parameters. Errors: Forward throws
// std::invalid_argument for an input that the module does not take.

#ifndef D2L_COMMON_NN_MODULE_H_
#define D2L_COMMON_NN_MODULE_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/tensor/tensor.h"

namespace d2l::nn {

class Module;

// Is shown what a module consists of, in the order in which it is printed. The
// names have no dots. It may replace a parameter.
class MemberVisitor {
 public:
  virtual ~MemberVisitor() = default;
  virtual void Parameter(std::string_view name, Tensor& parameter) = 0;
  virtual void Child(std::string_view name, Module& child) = 0;
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

  // Forward, for which errors and profiles name this line, too.
  Tensor operator()(const Tensor& x,
                    SourceLocation at = SourceLocation::Current());

 protected:
  Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
};

// Handles to the parameters, with PyTorch's names: "0.weight".
std::vector<std::pair<std::string, Tensor>> NamedParameters(
    const Module& module);
// The same without the names.
std::vector<Tensor> Parameters(const Module& module);
std::int64_t NumParameters(const Module& module);

// Replaces the parameters that are elsewhere by copies on the device.
void To(Module& module, Device device);

// "Linear(in_features=2, out_features=1, bias=True)"; one with children on
// several lines, as PyTorch prints it.
std::string ToString(const Module& module);
std::ostream& operator<<(std::ostream& out, const Module& module);

}  // namespace d2l::nn

#endif  // D2L_COMMON_NN_MODULE_H_
