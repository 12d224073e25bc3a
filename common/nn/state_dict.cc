#include "common/nn/state_dict.h"

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/autograd/tape.h"
#include "common/base/console/text.h"
#include "common/ops/copy.h"
#include "common/tensor/shape.h"

namespace d2l::nn {
namespace {

constexpr absl::string_view kModulePrefix = "module.";

using Shapes = std::map<std::string, Shape>;

std::string TorchSize(const Shape& shape) {
  return absl::StrCat("torch.Size([", absl::StrJoin(shape, ", "), "])");
}

bool AllBeginWith(const Shapes& shapes, absl::string_view prefix) {
  for (const auto& [name, shape] : shapes) {
    if (!absl::StartsWith(name, prefix)) return false;
  }
  return !shapes.empty();
}

// The remedy if only a DataParallel is between the two; else "".
std::string Cure(const Shapes& wanted, const Shapes& given) {
  const bool is_inside = AllBeginWith(wanted, kModulePrefix);
  if (AllBeginWith(given, kModulePrefix) && !is_inside) {
    return "\n\tAll keys begin with \"module.\": they are of a DataParallel. "
           "Load them into one, DataParallel(net), or load them without the "
           "prefix: nn::LoadStateDict(net, nn::ConsumePrefix("
           "safetensors::LoadFile(path)->tensors, \"module.\")).";
  }
  if (is_inside && !AllBeginWith(given, kModulePrefix)) {
    return "\n\tThe keys of this module begin with \"module.\", it is a "
           "DataParallel, and those of the state do not. Load them into the "
           "network that it is made of: nn::LoadStateDict(net.module(), …).";
  }
  return "";
}

absl::StatusOr<IncompatibleKeys> Compare(const Module& module,
                                         const Shapes& given, bool strict) {
  Shapes wanted;
  IncompatibleKeys keys;
  std::vector<std::string> errors;
  for (const auto& [key, tensor] : NamedState(module)) {
    wanted[key] = tensor.shape();
    const auto found = given.find(key);
    if (found == given.end()) {
      keys.missing_keys.push_back(key);
    } else if (found->second != tensor.shape()) {
      errors.push_back(absl::StrFormat(
          "size mismatch for %s: copying a param with shape %s from "
          "checkpoint, the shape in current model is %s.",
          key, TorchSize(found->second), TorchSize(tensor.shape())));
    }
  }
  for (const auto& [key, shape] : given) {
    if (wanted.count(key) == 0) keys.unexpected_keys.push_back(key);
  }
  const bool nothing =
      !wanted.empty() && keys.missing_keys.size() == wanted.size();
  if (strict || nothing) {
    if (!keys.unexpected_keys.empty()) {
      errors.insert(errors.begin(),
                    absl::StrFormat("Unexpected key(s) in state_dict: %s. ",
                                    QuotedTexts(keys.unexpected_keys)));
    }
    if (!keys.missing_keys.empty()) {
      errors.insert(errors.begin(),
                    absl::StrFormat("Missing key(s) in state_dict: %s. ",
                                    QuotedTexts(keys.missing_keys)));
    }
  }
  if (errors.empty()) return keys;
  if (nothing && !strict) {
    errors.push_back("No key is that of a parameter: nothing was loaded.");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "Error(s) in loading state_dict for ", module.Name(), ":\n\t",
      absl::StrJoin(errors, "\n\t"), nothing ? Cure(wanted, given) : ""));
}

}  // namespace

safetensors::NamedTensors StateDict(const Module& module) {
  const auto state = NamedState(module);
  return {state.begin(), state.end()};
}

absl::StatusOr<IncompatibleKeys> LoadStateDict(
    Module& module, const safetensors::NamedTensors& state, bool strict) {
  Shapes shapes;
  for (const auto& [key, tensor] : state) shapes[key] = tensor.shape();
  absl::StatusOr<IncompatibleKeys> keys = Compare(module, shapes, strict);
  if (!keys.ok()) return keys;
  const NoGradGuard no_grad;
  for (const auto& [key, tensor] : NamedState(module)) {
    const auto found = state.find(key);
    if (found != state.end()) CopyTo(found->second, tensor);
  }
  return keys;
}

absl::StatusOr<IncompatibleKeys> LoadStateDict(Module& module,
                                               const std::string& path,
                                               bool strict) {
  absl::StatusOr<safetensors::Reader> reader = safetensors::Reader::Open(path);
  if (!reader.ok()) return reader.status();
  Shapes shapes;
  for (const safetensors::Entry& entry : reader->header().entries) {
    shapes[entry.name] = entry.shape;
  }
  absl::StatusOr<IncompatibleKeys> keys = Compare(module, shapes, strict);
  if (!keys.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(PrintableText(path), ": ", keys.status().message()));
  }
  const NoGradGuard no_grad;
  safetensors::NamedTensors targets = StateDict(module);
  for (const std::string& key : keys->missing_keys) targets.erase(key);
  const absl::Status read = reader->ReadInto(targets);
  if (!read.ok()) return read;
  return keys;
}

absl::Status SaveStateDict(const Module& module, const std::string& path,
                           const safetensors::Metadata& metadata) {
  return safetensors::SaveFile(StateDict(module), path, metadata);
}

safetensors::NamedTensors ConsumePrefix(const safetensors::NamedTensors& state,
                                        absl::string_view prefix) {
  safetensors::NamedTensors result;
  for (const auto& [key, tensor] : state) {
    result[std::string(absl::StripPrefix(key, prefix))] = tensor;
  }
  return result;
}

}  // namespace d2l::nn
