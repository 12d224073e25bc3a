#include "common/nn/module.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/ops/copy.h"
#include "common/ops/creation.h"
#include "common/ops/elementwise.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/record.h"
#include "common/tensor/dtype.h"

namespace d2l::nn {
namespace {

// Lists the members that it visits, and those of children.
class Lister : public MemberVisitor {
 public:
  void Parameter(std::string_view name, Tensor& parameter) override {
    Add(name, parameter, parameters);
  }
  void Buffer(std::string_view name, Tensor& buffer) override {
    Add(name, buffer, buffers);
  }
  void Child(std::string_view name, Module& child) override {
    const std::size_t length = prefix_.size();
    prefix_.append(name).append(".");
    child.Members(*this);
    prefix_.resize(length);
  }

  using Named = std::vector<std::pair<std::string, Tensor>>;
  Named parameters, buffers;    // each tensor once, under its first name
  Named state;                  // both, under all their names
  std::vector<Tensor*> places;  // of the state

 private:
  void Add(std::string_view name, Tensor& x, Named& list) {
    state.emplace_back(prefix_ + std::string(name), x);
    places.push_back(&x);
    const bool is_new = !x.defined() || ids_.insert(x.id()).second;
    if (is_new) list.push_back(state.back());
  }

  std::string prefix_;
  absl::flat_hash_set<std::uint64_t> ids_;
};

// Throws if two parameters that are not the same tensor share elements: each
// would have a gradient and a momentum of its own, and To would part them.
void CheckSeparate(const std::vector<std::pair<std::string, Tensor>>& all) {
  struct Part {
    std::uint64_t storage;
    std::int64_t begin, end;
    const std::string* name;
  };
  std::vector<Part> parts;
  for (const auto& [name, x] : all) {
    if (!x.defined() || x.numel() == 0) continue;
    parts.push_back(
        {x.storage()->id(), x.offset(), x.offset() + x.span(), &name});
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tie(a.storage, a.begin) < std::tie(b.storage, b.begin);
  });
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Part &a = parts[i - 1], &b = parts[i];
    if (a.storage != b.storage || b.begin >= a.end) continue;
    throw std::invalid_argument(absl::StrFormat(
        "[Parameters] %s and %s share memory, and are not the same tensor; for "
        "tied weights assign the tensor itself, not a view of it, and for "
        "weights of their own a copy, Clone(x)",
        *a.name, *b.name));
  }
}

// Replaces all tensors of a module by what `replace` makes of them, one for
// each tensor, whatever number of names it has.
template <typename Replace>
void ReplaceState(const std::vector<Tensor*>& from,
                  const std::vector<Tensor*>& to, const Replace& replace) {
  absl::flat_hash_map<std::uint64_t, Tensor> replaced;
  for (std::size_t i = 0; i < from.size(); ++i) {
    Tensor& made = replaced[from[i]->id()];
    if (!made.defined()) made = replace(*from[i]);
    *to[i] = made;
  }
}

class Printer : public MemberVisitor {
 public:
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

Lister List(const Module& module) {
  Lister lister;
  VisitConst(module, lister);
  return lister;
}

// The module and its descendants, parents first.
std::vector<Module*> ModulesOf(const Module& module) {
  struct : MemberVisitor {
    void Child(std::string_view, Module& child) override {
      modules.push_back(&child);
      child.Members(*this);
    }
    std::vector<Module*> modules;
  } lister;
  lister.modules.push_back(const_cast<Module*>(&module));  // NOLINT
  VisitConst(module, lister);
  return lister.modules;
}

thread_local bool cloning = false;

template <typename Draw>
void Init(Module& module, const Draw& draw) {
  const NoGradGuard no_grad;
  for (const auto& [name, parameter] : NamedParameters(module)) {
    if (parameter.dim() >= 2) {
      CopyTo(draw(parameter), parameter);
    } else if (name == "bias" || absl::EndsWith(name, ".bias")) {
      CopyTo(ZerosLike(parameter), parameter);
    }
  }
}

}  // namespace

Tensor Module::operator()(const Tensor& x, SourceLocation at) {
  const RequestedBy by(at);
  return Forward(x);
}

std::unique_ptr<Module> Module::New() const {
  throw std::logic_error(absl::StrFormat(
      "[Clone] %s does not say how it is made; override New in its class: "
      "std::unique_ptr<nn::Module> New() const override { return "
      "std::make_unique<%s>(…); }",
      Name(), Name()));
}

void Module::Train(bool mode) {
  struct : MemberVisitor {
    void Child(std::string_view, Module& child) override { child.Train(mode); }
    bool mode;
  } children;
  children.mode = mode;
  training_ = mode;
  Members(children);
}

void MemberVisitor::Child(std::string_view, Module& child) {
  child.Members(*this);
}

std::vector<std::pair<std::string, Tensor>> NamedParameters(
    const Module& module) {
  auto parameters = List(module).parameters;
  CheckSeparate(parameters);
  return parameters;
}

std::vector<std::pair<std::string, Tensor>> NamedBuffers(const Module& module) {
  return List(module).buffers;
}

std::vector<std::pair<std::string, Tensor>> NamedState(const Module& module) {
  return List(module).state;
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
  const std::vector<Tensor*> places = List(module).places;
  ReplaceState(places, places,
               [&](const Tensor& x) { return d2l::To(x, device); });
}

void To(Module& module, DType dtype) {
  const std::vector<Tensor*> places = List(module).places;
  ReplaceState(places, places, [&](const Tensor& x) {
    return IsFloatingPoint(x.dtype()) ? d2l::To(x, dtype) : x;
  });
}

std::unique_ptr<Module> Clone(const Module& module, Device device) {
  const bool outer = std::exchange(cloning, true);
  const absl::Cleanup reset = [outer] { cloning = outer; };
  std::unique_ptr<Module> copy = module.New();
  const Lister from = List(module), to = List(*copy);
  const auto same_name = [](const auto& a, const auto& b) {
    return a.first == b.first;
  };
  if (ModulesOf(module).size() != ModulesOf(*copy).size() ||
      !std::equal(from.state.begin(), from.state.end(), to.state.begin(),
                  to.state.end(), same_name)) {
    throw std::logic_error(absl::StrFormat(
        "[Clone] New made another structure:\n%s\nof\n%s\nIt should make the "
        "module with the arguments that this one was made with",
        ToString(*copy), ToString(module)));
  }
  ReplaceState(from.places, to.places, [&](const Tensor& x) {
    return x.device() == device ? d2l::Clone(x) : d2l::To(x, device);
  });
  CopyModes(module, *copy);
  return copy;
}

void CopyModes(const Module& from, Module& to) {
  const std::vector<Module*> theirs = ModulesOf(from), ours = ModulesOf(to);
  const auto same_mode = [](const Module* a, const Module* b) {
    return a->training() == b->training();
  };
  if (std::equal(theirs.begin(), theirs.end(), ours.begin(), ours.end(),
                 same_mode)) {
    return;
  }
  // From the outermost module on: Train includes the children.
  for (std::size_t i = 0; i < theirs.size() && i < ours.size(); ++i) {
    ours[i]->Train(theirs[i]->training());
  }
}

void Apply(Module& module, const std::function<void(Module&)>& function) {
  struct : MemberVisitor {
    void Child(std::string_view, Module& child) override {
      Apply(child, *function);
    }
    const std::function<void(Module&)>* function;
  } children;
  children.function = &function;
  module.Members(children);
  function(module);
}

void InitNormal(Module& module, double standard_deviation) {
  Init(module, [&](const Tensor& weight) {
    return RandnLike(weight) * standard_deviation;
  });
}

void InitXavierUniform(Module& module) {
  Init(module, [](const Tensor& weight) {
    // The shape is (out, in), or (out, in, height, width) for a convolution.
    double window = 1;
    for (int i = 2; i < weight.dim(); ++i) {
      window *= static_cast<double>(weight.size(i));
    }
    const double fans =
        window * static_cast<double>(weight.size(0) + weight.size(1));
    const double bound = fans > 0 ? std::sqrt(6 / fans) : 0;
    return RandLike(weight) * (2 * bound) - bound;
  });
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

namespace d2l::internal {
bool IsCloning() { return nn::cloning; }
}  // namespace d2l::internal
