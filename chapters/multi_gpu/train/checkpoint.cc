#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/train/train.h"
#include "common/base/console/text.h"
#include "common/nn/state_dict.h"
#include "common/ops/no_grad.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"
#include "nlohmann/json.hpp"

namespace d2l {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LoaderPosition, epoch, batch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EpochRecord, seconds, loss,
                                   training_accuracy, test_accuracy)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingProgress, epochs, next, samples,
                                   right, loss_sum, seconds)

namespace {

using Json = nlohmann::json;

// The name of the metadata, and the format's version.
constexpr char kFormat[] = "d2l training checkpoint 4";
// Names of momentum buffers: this prefix and the parameter's name.
constexpr char kMomentum[] = "momentum.";

}  // namespace

absl::Status SaveCheckpoint(const Checkpoint& checkpoint, const nn::Module& net,
                            nn::SGD& sgd, const std::string& path) {
  safetensors::NamedTensors tensors = nn::StateDict(net);
  std::size_t i = 0;
  for (const auto& [name, parameter] : nn::NamedParameters(net)) {
    const Tensor& buffer = sgd.momentum_buffers()[i++];
    if (buffer.defined()) tensors[kMomentum + name] = buffer;
  }
  const Json json = {{"options", checkpoint.options},
                     {"progress", checkpoint.progress}};
  // `replace`: a path may not be UTF-8, which must not throw.
  return safetensors::SaveFile(
      tensors, path,
      {{kFormat, json.dump(-1, ' ', false, Json::error_handler_t::replace)}});
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path) {
  const absl::StatusOr<safetensors::Reader> reader =
      safetensors::Reader::Open(path);
  if (!reader.ok()) return reader.status();
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is not a checkpoint of train: %s", PrintableText(path), what));
  };
  const safetensors::Metadata& metadata = reader->header().metadata;
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

absl::Status LoadState(const std::string& path, nn::Module& net, nn::SGD& sgd) {
  const auto parameters = nn::NamedParameters(net);
  absl::StatusOr<safetensors::File> file =
      safetensors::LoadFile(path, parameters[0].second.device());
  if (!file.ok()) return file.status();
  // What is no parameter's momentum stays in `weights`, as an unexpected key.
  safetensors::NamedTensors& weights = file->tensors;
  std::vector<Tensor> momentum;
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
  for (std::size_t i = 0; i < momentum.size(); ++i) {
    sgd.momentum_buffers()[i] =
        Clone(To(momentum[i], parameters[i].second.dtype()));
  }
  return absl::OkStatus();
}

}  // namespace d2l
