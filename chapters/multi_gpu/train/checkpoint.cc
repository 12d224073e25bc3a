#include "chapters/multi_gpu/train/checkpoint.h"

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/autograd/tape.h"
#include "common/base/console/text.h"
#include "common/base/files/format_error.h"
#include "common/ops/copy.h"
#include "common/ops/creation.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "d2l training checkpoint 2";

// The momentum buffers' names, in their order.
std::vector<std::string> MomentumNames(const nn::Module& net) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : nn::NamedParameters(net)) {
    names.push_back(absl::StrCat("momentum.", name));
  }
  return names;
}

Json ToJson(const TrainingProgress& progress) {
  Json epochs = Json::array();
  for (const EpochRecord& epoch : progress.epochs) {
    epochs.push_back({epoch.seconds, epoch.loss, epoch.training_accuracy,
                      epoch.test_accuracy});
  }
  return {{"epoch", progress.next.epoch},
          {"batch", progress.next.batch},
          {"samples", progress.samples},
          {"right", progress.right},
          {"loss_sum", progress.loss_sum},
          {"seconds", progress.seconds},
          {"epochs", epochs}};
}

void Check(bool right, const char* what) {
  if (!right) Refuse("%s", what);
}

std::int64_t Count(const Json& json, const char* name) {
  const Json& value = json.at(name);
  Check(value.is_number_integer() && !(value < 0) &&
            value <= std::int64_t{1} << 53,
        "its progress has a count that is none");
  return value.get<std::int64_t>();
}

double Finite(const Json& json) {
  const auto value = json.get<double>();
  Check(std::isfinite(value), "its progress has a number that is none");
  return value;
}

TrainingProgress ProgressFromJson(const Json& json) {
  TrainingProgress progress;
  progress.next = {Count(json, "epoch"), Count(json, "batch")};
  progress.samples = Count(json, "samples");
  progress.right = Count(json, "right");
  progress.loss_sum = Finite(json.at("loss_sum"));
  progress.seconds = Finite(json.at("seconds"));
  for (const Json& epoch : json.at("epochs")) {
    progress.epochs.push_back({Finite(epoch.at(0)), Finite(epoch.at(1)),
                               Finite(epoch.at(2)), Finite(epoch.at(3))});
  }
  Check(
      static_cast<std::int64_t>(progress.epochs.size()) == progress.next.epoch,
      "its epoch is not the number of its epochs");
  return progress;
}

// These two throw FormatError, nlohmann's exceptions and std::out_of_range.
std::map<std::string, std::string> OptionsFrom(
    const safetensors::Metadata& metadata) {
  const auto format = metadata.find("format");
  Check(format != metadata.end() && format->second == kFormat,
        "its metadata has no \"format\": \"d2l training checkpoint 2\"; "
        "nn::LoadStateDict loads weights alone");
  auto options = Json::parse(metadata.at("options"))
                     .get<std::map<std::string, std::string>>();
  for (auto& [name, value] : options) {
    value = CutText(PrintableText(value), 1000);
  }
  return options;
}

Checkpoint FromFile(safetensors::File file) {
  Checkpoint checkpoint;
  checkpoint.options = OptionsFrom(file.metadata);
  checkpoint.progress =
      ProgressFromJson(Json::parse(file.metadata.at("progress")));
  for (const Json& generator : Json::parse(file.metadata.at("generators"))) {
    Check(generator.at(0).is_number_unsigned() &&
              generator.at(1).is_number_unsigned(),
          "its generators are no numbers");
    checkpoint.state.generators.push_back({generator.at(0), generator.at(1)});
  }
  checkpoint.state.tensors = std::move(file.tensors);
  return checkpoint;
}

// What read() returns; a status that names the file for what it throws.
template <typename F>
auto Understand(const std::string& path, F read)
    -> absl::StatusOr<decltype(read())> {
  const auto error = [&](const std::string& what) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is no checkpoint of a training: %s", path, what));
  };
  try {
    return read();
  } catch (const FormatError& wrong) {
    return error(wrong.what);
  } catch (const Json::exception& wrong) {
    return error(absl::StrCat("its metadata is no JSON as wanted: ",
                              CutText(PrintableText(wrong.what()), 200)));
  } catch (const std::out_of_range&) {
    return error("\"options\", \"progress\" or \"generators\" is missing");
  }
}

}  // namespace

TrainingState CopyState(const nn::Module& net, nn::SGD& sgd,
                        const std::vector<Device>& devices) {
  const NoGradGuard guard;
  TrainingState state;
  for (const auto& [name, tensor] : nn::NamedState(net)) {
    state.tensors[name] = Clone(tensor);
  }
  const std::vector<std::string> momentum = MomentumNames(net);
  for (std::size_t i = 0; i < momentum.size(); ++i) {
    const Tensor& buffer = sgd.momentum_buffers()[i];
    if (buffer.defined()) state.tensors[momentum[i]] = Clone(buffer);
  }
  for (const Device device : devices) {
    state.generators.push_back(GetGeneratorState(device));
  }
  return state;
}

absl::Status RestoreState(const TrainingState& state, const nn::Module& net,
                          nn::SGD& sgd, const std::vector<Device>& devices) {
  if (state.generators.size() != devices.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "it was made on %d devices, and there are %d: name as many with "
        "--devices",
        state.generators.size(), devices.size()));
  }
  // Momentum begins with the first step: for all parameters, or for none.
  std::vector<std::pair<std::string, Tensor>> wanted = nn::NamedState(net);
  const std::vector<std::string> momentum = MomentumNames(net);
  const std::vector<Tensor> parameters = nn::Parameters(net);
  const bool has_momentum =
      !momentum.empty() && state.tensors.count(momentum[0]) != 0;
  for (std::size_t i = 0; has_momentum && i < momentum.size(); ++i) {
    wanted.emplace_back(momentum[i], parameters[i]);
  }
  for (const auto& [name, tensor] : wanted) {
    const auto found = state.tensors.find(name);
    if (found == state.tensors.end()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "it has no \"%s\", which %s needs", name, net.Name()));
    }
    if (found->second.shape() != tensor.shape() ||
        found->second.dtype() != tensor.dtype()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "its \"%s\" is %s, and that of %s is %s", name,
          found->second.Describe(), net.Name(), tensor.Describe()));
    }
  }
  if (state.tensors.size() != wanted.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("it has %d tensors, and %s needs %d",
                        state.tensors.size(), net.Name(), wanted.size()));
  }

  const NoGradGuard guard;
  for (const auto& [name, tensor] : nn::NamedState(net)) {
    CopyTo(state.tensors.at(name), tensor);
  }
  for (std::size_t i = 0; i < momentum.size(); ++i) {
    Tensor& buffer = sgd.momentum_buffers()[i];
    buffer = Tensor();
    if (!has_momentum) continue;
    buffer = EmptyLike(parameters[i]);
    CopyTo(state.tensors.at(momentum[i]), buffer);
  }
  for (std::size_t i = 0; i < devices.size(); ++i) {
    SetGeneratorState(state.generators[i], devices[i]);
  }
  return absl::OkStatus();
}

absl::Status SaveCheckpoint(const Checkpoint& checkpoint,
                            const std::string& path) {
  Json generators = Json::array();
  for (const GeneratorState& generator : checkpoint.state.generators) {
    generators.push_back({generator.seed, generator.offset});
  }
  // `replace`: a path may be no UTF-8; that must not throw.
  const auto text = [](const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  return safetensors::SaveFile(checkpoint.state.tensors, path,
                               {{"format", kFormat},
                                {"options", text(checkpoint.options)},
                                {"progress", text(ToJson(checkpoint.progress))},
                                {"generators", text(generators)}});
}

absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path,
                                          Device device) {
  absl::StatusOr<safetensors::File> file = safetensors::LoadFile(path, device);
  if (!file.ok()) return file.status();
  return Understand(path, [&] { return FromFile(*std::move(file)); });
}

absl::StatusOr<std::map<std::string, std::string>> LoadCheckpointOptions(
    const std::string& path) {
  const absl::StatusOr<safetensors::Reader> reader =
      safetensors::Reader::Open(path);
  if (!reader.ok()) return reader.status();
  return Understand(path,
                    [&] { return OptionsFrom(reader->header().metadata); });
}

}  // namespace d2l
