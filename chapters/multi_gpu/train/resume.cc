#include "chapters/multi_gpu/train/resume.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/console/language.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

// "cpu (AMD EPYC), cpu (AMD EPYC)", as if all processes had this one's.
std::string Hardware(const TrainOptions& options, const Processes& processes) {
  const std::string own =
      absl::StrJoin(options.devices, ", ", [](std::string* out, Device device) {
        absl::StrAppend(out, DeviceTypeName(device.type()), " (",
                        GetDeviceInfo(device).name, ")");
      });
  return absl::StrJoin(std::vector<std::string>(processes.size(), own), ", ");
}

// "2 processes of 1 device"
std::string HowMany(const TrainOptions& options, const Processes& processes) {
  const std::size_t devices = options.devices.size();
  return absl::StrFormat("%d process%s of %d device%s", processes.size(),
                         processes.several() ? "es" : "", devices,
                         devices == 1 ? "" : "s");
}

// What a checkpoint says of its data, in the run's language.
std::string InWords(const std::string& fingerprint) {
  long long images = 0;
  char hash[17] = "";
  return std::sscanf(fingerprint.c_str(), "%lld images with the SHA-256 %16s",
                     &images, hash) == 2
             ? Say("%d images with the SHA-256 %s", images, std::string(hash))
             : fingerprint;
}

}  // namespace

Checkpoint MakeCheckpoint(const TrainOptions& options, const TrainData& data,
                          const TrainingProgress& progress,
                          const nn::Module& net, nn::SGD& sgd,
                          Processes& processes) {
  Checkpoint checkpoint = {options.ForCheckpoint(), progress,
                           CopyState(net, sgd, options.devices)};
  checkpoint.options["data"] = data.training_fingerprint;
  checkpoint.options["test_data"] = data.test_fingerprint;
  checkpoint.options["hardware"] = Hardware(options, processes);
  checkpoint.options["processes"] = HowMany(options, processes);
  checkpoint.state.generators = processes.Gather(checkpoint.state.generators);
  return checkpoint;
}

absl::StatusOr<TrainingProgress> RestoreTraining(const TrainOptions& options,
                                                 const TrainData& data,
                                                 const Processes& processes,
                                                 const nn::Module& net,
                                                 nn::SGD& sgd,
                                                 DataLoader& batches) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        Say("cannot go on from %s: %s", options.resume, std::string(what)));
  };
  const Checkpoint& from = *options.checkpoint;
  const auto trained_on = from.options.find("data");
  const std::string before = trained_on == from.options.end()
                                 ? Translated("nothing that it names")
                                 : trained_on->second;
  if (before != data.training_fingerprint) {
    return error(
        Say("it was trained on %s; %s has %s. Name the same data with "
            "--data_dir or --images.",
            InWords(before), data.training.name,
            InWords(data.training_fingerprint)));
  }
  TrainingState state = from.state;
  const std::size_t each = options.devices.size();
  if (state.generators.size() == each * processes.size()) {
    const auto own = from.state.generators.begin() +
                     static_cast<std::ptrdiff_t>(each) * processes.rank();
    state.generators.assign(own, own + static_cast<std::ptrdiff_t>(each));
  }
  const absl::Status restored = RestoreState(state, net, sgd, options.devices);
  if (!restored.ok()) return error(restored.message());
  const TrainingProgress& progress = from.progress;
  try {
    batches.SetPosition(progress.next);
  } catch (const std::invalid_argument& wrong) {
    return error(wrong.what());
  }
  const std::int64_t samples =
      std::min(progress.next.batch * options.batch_size, data.training.size());
  if (progress.samples != samples || progress.right < 0 ||
      progress.right > samples) {
    return error(absl::StrFormat(
        "%d of %d samples right before batch %d of an epoch; there are %d "
        "samples before it",
        progress.right, progress.samples, progress.next.batch, samples));
  }
  return progress;
}

std::vector<std::string> ChangesSince(const TrainOptions& options,
                                      const TrainData& data,
                                      const Processes& processes) {
  struct Change {
    const char* name;
    std::string now;
    const char* so;
  };
  std::vector<std::string> changes;
  for (const Change& change :
       {Change{"hardware", Hardware(options, processes),
               "from here on the numbers may differ in their last bits."},
        {"processes", HowMany(options, processes),
         options.by_mpi
             ? "MPI_Allreduce may add in another order, so from here on the "
               "numbers may differ in their last bits."
             : "as many devices in all, so the numbers stay the same, bit for "
               "bit."},
        {"test_data", data.test_fingerprint,
         "from here on the test accuracies are of other images."}}) {
    const auto before = options.checkpoint->options.find(change.name);
    if (before == options.checkpoint->options.end() ||
        before->second == change.now) {
      continue;
    }
    changes.push_back(Say("It was made with %s, and this is %s: %s",
                          InWords(before->second), InWords(change.now),
                          Translated(change.so)));
  }
  return changes;
}

}  // namespace d2l
