#include "common/nn/module.h"

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/ops/copy.h"
#include "common/ops/record.h"

namespace d2l::nn {
namespace {

// Of all parameters, also those of children.
class ParameterLister : public MemberVisitor {
 public:
  void Parameter(std::string_view name, Tensor& parameter) override {
    parameters.emplace_back(prefix_ + std::string(name), parameter);
  }
  void Child(std::string_view name, Module& child) override {
    const std::size_t length = prefix_.size();
    prefix_.append(name).append(".");
    child.Members(*this);
    prefix_.resize(length);
  }

  std::vector<std::pair<std::string, Tensor>> parameters;

 private:
  std::string prefix_;
};

class Mover : public MemberVisitor {
 public:
  explicit Mover(Device device) : device_(device) {}
  void Parameter(std::string_view, Tensor& parameter) override {
    parameter = d2l::To(parameter, device_);
  }
  void Child(std::string_view, Module& child) override { child.Members(*this); }

 private:
  const Device device_;
};

class Printer : public MemberVisitor {
 public:
  void Parameter(std::string_view, Tensor&) override {}
  void Child(std::string_view name, Module& child) override {
    text.append("\n  (").append(name).append("): ");
    text += absl::StrReplaceAll(ToString(child), {{"\n", "\n  "}});
  }

  std::string text;  // begins with a line break, unless it is empty
};

// For visitors that change nothing.
void VisitConst(const Module& module, MemberVisitor& visitor) {
  const_cast<Module&>(module).Members(visitor);  // NOLINT
}

}  // namespace

Tensor Module::operator()(const Tensor& x, SourceLocation at) {
  const RequestedBy by(at);
  return Forward(x);
}

std::vector<std::pair<std::string, Tensor>> NamedParameters(
    const Module& module) {
  ParameterLister lister;
  VisitConst(module, lister);
  return std::move(lister.parameters);
}

std::vector<Tensor> Parameters(const Module& module) {
  std::vector<Tensor> parameters;
  for (auto& [name, parameter] : NamedParameters(module)) {
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

std::int64_t NumParameters(const Module& module) {
  std::int64_t count = 0;
  for (const auto& [name, parameter] : NamedParameters(module)) {
    count += parameter.numel();
  }
  return count;
}

void To(Module& module, Device device) {
  Mover mover(device);
  module.Members(mover);
}

std::string ToString(const Module& module) {
  Printer printer;
  VisitConst(module, printer);
  const std::string extra = module.ExtraRepr();
  if (printer.text.empty()) {
    return absl::StrCat(module.Name(), "(", extra, ")");
  }
  return absl::StrCat(module.Name(), "(", extra.empty() ? "" : "\n  ", extra,
                      printer.text, "\n)");
}

std::ostream& operator<<(std::ostream& out, const Module& module) {
  return out << ToString(module);
}

}  // namespace d2l::nn
