#include "chapters/multi_gpu/train/checkpoint.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/autograd/tape.h"
#include "common/base/console/text.h"
#include "common/nn/state_dict.h"
#include "common/ops/copy.h"
#include "common/ops/creation.h"
#include "nlohmann/json.hpp"

namespace d2l {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LoaderPosition, epoch, batch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EpochRecord, seconds, loss,
                                   training_accuracy, test_accuracy)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingProgress, epochs, next, samples,
                                   right, loss_sum, seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GeneratorState, seed, offset)

namespace {

using Json = nlohmann::json;

// The name of the metadata, and the format's version.
constexpr char kFormat[] = "d2l training checkpoint 3";
// Names of momentum buffers: this prefix and the parameter's name.
constexpr char kMomentum[] = "momentum.";

// Reads everything except the tensors.
absl::StatusOr<Checkpoint> FromMetadata(const std::string& path,
                                        const safetensors::Metadata& metadata) {
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is not a checkpoint of train: %s", path, what));
  };
  const auto text = metadata.find(kFormat);
  if (text == metadata.end()) {
    return error(
        absl::StrFormat("its metadata has no \"%s\"; "
                        "nn::LoadStateDict loads weights alone",
                        kFormat));
  }
  Checkpoint checkpoint;
  try {
    const Json json = Json::parse(text->second);
    json.at("options").get_to(checkpoint.options);
    json.at("progress").get_to(checkpoint.progress);
    json.at("generators").get_to(checkpoint.state.generators);
  } catch (const Json::exception& wrong) {
    return error(absl::StrCat("its metadata is not the JSON of a checkpoint: ",
                              CutText(PrintableText(wrong.what()), 200)));
  }
  for (auto& [name, value] : checkpoint.options) {
    value = CutText(PrintableText(value), 1000);
  }
  const TrainingProgress& progress = checkpoint.progress;
  if (static_cast<std::int64_t>(progress.epochs.size()) !=
      progress.next.epoch) {
    return error("its epoch is not the number of its epochs");
  }
  return checkpoint;
}

}  // namespace

TrainingState CopyState(const nn::Module& net, nn::SGD& sgd,
                        const std::vector<Device>& devices) {
  const NoGradGuard guard;
  TrainingState state;
  for (const auto& [name, tensor] : nn::NamedState(net)) {
    state.tensors[name] = Clone(tensor);
  }
  std::size_t i = 0;
  for (const auto& [name, parameter] : nn::NamedParameters(net)) {
    const Tensor& buffer = sgd.momentum_buffers()[i++];
    if (buffer.defined()) state.tensors[kMomentum + name] = Clone(buffer);
  }
  for (const Device device : devices) {
    state.generators.push_back(GetGeneratorState(device));
  }
  return state;
}

absl::Status RestoreState(const TrainingState& state, nn::Module& net,
                          nn::SGD& sgd, const std::vector<Device>& devices) {
  if (state.generators.size() != devices.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "it was made on %d devices, and there are %d: name as many with "
        "--devices",
        state.generators.size(), devices.size()));
  }
  // What is no parameter's momentum stays in `weights`, as an unexpected key.
  safetensors::NamedTensors weights = state.tensors;
  std::vector<Tensor> momentum;
  const auto parameters = nn::NamedParameters(net);
  for (const auto& [name, parameter] : parameters) {
    const auto found = weights.find(kMomentum + name);
    if (found == weights.end() || found->second.shape() != parameter.shape()) {
      continue;
    }
    momentum.push_back(found->second);
    weights.erase(found);
  }
  // Momentum begins with the first step: all parameters have it, or none has.
  if (!momentum.empty() && momentum.size() != parameters.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("it has the momentum of %d parameters, and %s has %d",
                        momentum.size(), net.Name(), parameters.size()));
  }
  const auto keys = nn::LoadStateDict(net, weights);
  if (!keys.ok()) return keys.status();

  const NoGradGuard guard;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    Tensor& buffer = sgd.momentum_buffers()[i];
    buffer = momentum.empty() ? Tensor() : EmptyLike(parameters[i].second);
    if (buffer.defined()) CopyTo(momentum[i], buffer);
  }
  for (std::size_t device = 0; device < devices.size(); ++device) {
    SetGeneratorState(state.generators[device], devices[device]);
  }
  return absl::OkStatus();
}

absl::Status SaveCheckpoint(const Checkpoint& checkpoint,
                            const std::string& path) {
  const Json json = {{"options", checkpoint.options},
                     {"progress", checkpoint.progress},
                     {"generators", checkpoint.state.generators}};
  // `replace`: a path may not be UTF-8, which must not throw.
  return safetensors::SaveFile(
      checkpoint.state.tensors, path,
      {{kFormat, json.dump(-1, ' ', false, Json::error_handler_t::replace)}});
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path,
                                          Device device) {
  absl::StatusOr<safetensors::File> file = safetensors::LoadFile(path, device);
  if (!file.ok()) return file.status();
  absl::StatusOr<Checkpoint> checkpoint = FromMetadata(path, file->metadata);
  if (checkpoint.ok()) checkpoint->state.tensors = std::move(file->tensors);
  return checkpoint;
}

absl::StatusOr<Checkpoint> LoadCheckpointHeader(const std::string& path) {
  const absl::StatusOr<safetensors::Reader> reader =
      safetensors::Reader::Open(path);
  if (!reader.ok()) return reader.status();
  return FromMetadata(path, reader->header().metadata);
}

}  // namespace d2l
