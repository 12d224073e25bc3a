#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chapters/multi_gpu/train/options.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/sha256.h"
#include "common/data/dataset.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/module.h"
#include "common/ops/creation.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/schedule.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "common/parallel/nccl/nccl.h"

ABSL_DECLARE_FLAG(std::string, net);
ABSL_DECLARE_FLAG(std::string, init);
ABSL_DECLARE_FLAG(std::string, devices);
ABSL_DECLARE_FLAG(int, num_gpus);
ABSL_DECLARE_FLAG(std::string, allreduce);
ABSL_DECLARE_FLAG(std::string, split);
ABSL_DECLARE_FLAG(int, max_in_flight);
ABSL_DECLARE_FLAG(std::string, shard);
ABSL_DECLARE_FLAG(std::int64_t, device_memory_mb);

namespace d2l {
namespace {

nn::Sequential Network(const std::string& name, Device device) {
  if (name == "lenet") return nn::LeNet(device);
  if (name == "resnet18") {
    return nn::ResNet18(/*num_classes=*/10, /*in_channels=*/1, device);
  }
  if (name == "mlp") {
    return nn::Sequential(nn::Flatten(), nn::Linear(784, 256, device),
                          nn::ReLU(), nn::Linear(256, 10, device));
  }
  return nn::Sequential(nn::Flatten(), nn::Linear(784, 10, device));
}

// NotFound unless it is one of the names.
absl::Status CheckName(const std::string& flag, const std::string& name,
                       const std::vector<std::string>& names) {
  const std::string& nearest = *std::min_element(
      names.begin(), names.end(), [&](const auto& a, const auto& b) {
        return EditDistance(name, a) < EditDistance(name, b);
      });
  if (name == nearest) return absl::OkStatus();
  return absl::NotFoundError(
      Say("--%s=%s asked for; there are %s. Say --%s=%s.", flag, name,
          absl::StrJoin(names, ", "), flag, nearest));
}

std::string Fingerprint(const Dataset& data) {
  Sha256 hash;
  for (const std::vector<std::uint8_t>* part : {&data.images, &data.labels}) {
    hash.Update({reinterpret_cast<const char*>(part->data()), part->size()});
  }
  // It goes into checkpoints, so it is the same in every language.
  return absl::StrFormat("%d images with the SHA-256 %s", data.size(),
                         hash.Hex().substr(0, 16));
}

absl::Status TakeAllReduce(TrainOptions* options) {
  const std::string name = absl::GetFlag(FLAGS_allreduce);
  options->by_mpi = name == "mpi";
  if (options->by_mpi && options->processes == 1) {
    return absl::InvalidArgumentError(Say(
        "--allreduce=mpi asked for, which adds between processes; this is one. "
        "Start several, mpirun -np 2 bazel-bin/chapters/multi_gpu/train, or "
        "say --allreduce=split."));
  }
  if (options->by_mpi) return absl::OkStatus();
  const auto algorithm = ParseAllReduceAlgorithm(name);
  if (!algorithm.ok()) return algorithm.status();
  options->parallel.allreduce = *algorithm;
  if (*algorithm == AllReduceAlgorithm::kNccl && options->processes == 1) {
    const absl::Status status = CheckNccl(options->devices);
    if (status.ok()) return status;
    return absl::Status(
        status.code(),
        absl::StrCat("--allreduce=nccl asked for; ", status.message(), "."));
  }
  if (options->processes > 1 &&
      options->devices[0].type() != DeviceType::kCpu) {
    return absl::InvalidArgumentError(Say(
        "%d processes exchange what is on CPU devices; this one has %s. Say "
        "--devices=cpu:0, or have one process use all GPUs: --num_gpus=%d "
        "without mpirun.",
        options->processes, options->devices[0].ToString(),
        options->processes * static_cast<int>(options->devices.size())));
  }
  if (options->processes > 1 && (*algorithm == AllReduceAlgorithm::kHost ||
                                 *algorithm == AllReduceAlgorithm::kNccl)) {
    return absl::InvalidArgumentError(Say(
        "--allreduce=%s asked for, which adds in one process; there are %d. "
        "Say --allreduce=split.",
        name, options->processes));
  }
  return absl::OkStatus();
}

absl::Status TakeShard(TrainOptions* options) {
  const std::string name = absl::GetFlag(FLAGS_shard);
  const std::vector<std::string> names = {"none", "optimizer", "gradients",
                                          "parameters"};
  const absl::Status status = CheckName("shard", name, names);
  if (!status.ok()) return status;
  options->parallel.shard = static_cast<Shard>(
      std::find(names.begin(), names.end(), name) - names.begin());
  if (name == "none") return absl::OkStatus();
  // Two buckets of this size are held whole.
  options->parallel.bucket_bytes = options->parallel.first_bucket_bytes;
  if (options->by_mpi ||
      options->parallel.allreduce != AllReduceAlgorithm::kSplit) {
    return absl::InvalidArgumentError(
        Say("--shard=%s asked for, and --allreduce=%s; shards are added up by "
            "--allreduce=split. Leave one of them out.",
            name, absl::GetFlag(FLAGS_allreduce)));
  }
  const auto devices = static_cast<int>(options->devices.size());
  if (devices * options->processes == 1) {
    return absl::InvalidArgumentError(
        Say("--shard=%s asked for, which takes several devices; there is 1. "
            "Say --num_gpus=2, or leave --shard out.",
            name));
  }
  if (name != "parameters" || options->processes == 1 || devices == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(Say(
      "--shard=parameters asked for, which takes one device in each process; "
      "there are %d processes with %d devices each. Say mpirun -np %d and "
      "--devices=cpu:0, or --shard=gradients.",
      options->processes, devices, options->processes * devices));
}

}  // namespace

absl::Status TakeDevices(TrainOptions* options) {
  const int there = static_cast<int>(Devices().size());
  const int in_all = absl::GetFlag(FLAGS_num_gpus);
  const int asked = in_all / options->processes;  // in this process
  const std::string list = absl::GetFlag(FLAGS_devices);
  const std::string have =
      absl::StrCat(list, options->processes > 1 ? " in each process" : "");
  if (asked > there && !options->resume.empty()) {
    return absl::InvalidArgumentError(
        Say("the training in %s is on %d devices; --devices=%s has %d. Leave "
            "--devices out, or name as many.",
            options->resume, in_all, have, there));
  }
  if (in_all < 0 || asked > there) {
    return absl::InvalidArgumentError(Say(
        "--num_gpus=%d asked for; --devices=%s has %d. Say --num_gpus=%d, or "
        "name more devices, such as --devices=cpu:0,cpu:1.",
        in_all, have, there, there * options->processes));
  }
  if (in_all % options->processes != 0) {
    return absl::InvalidArgumentError(Say(
        "%d devices asked for by %s; %d processes cannot have as many each. "
        "Start %d processes with one each: mpirun -np %d",
        in_all,
        options->resume.empty() ? absl::StrCat("--num_gpus=", in_all)
                                : options->resume,
        options->processes, in_all, in_all));
  }
  const int count = asked > 0 ? asked : list == "auto" ? 1 : there;
  for (int i = 0; i < count; ++i) {
    options->devices.push_back(Devices()[i].device);
  }
  absl::Status status = TakeAllReduce(options);
  if (status.ok()) status = TakeShard(options);
  if (!status.ok()) return status;
  const std::int64_t most = absl::GetFlag(FLAGS_device_memory_mb);
  for (const Device device : options->devices) {
    if (most > 0) {
      Memory(device).SetMaxBytes(std::min(most, std::int64_t{1} << 40) << 20);
    }
  }
  options->parallel.max_in_flight = absl::GetFlag(FLAGS_max_in_flight);
  const std::string split = absl::GetFlag(FLAGS_split);
  if (split.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<int>> weights =
      ParseSplit(split, count * options->processes);
  if (!weights.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--split: ", weights.status().message()));
  }
  options->parallel.split = *std::move(weights);
  return absl::OkStatus();
}

absl::Status CheckNet() {
  absl::Status status = CheckName("net", absl::GetFlag(FLAGS_net),
                                  {"lenet", "resnet18", "mlp", "linear"});
  status.Update(
      CheckName("init", absl::GetFlag(FLAGS_init), {"xavier", "book"}));
  return status;
}

std::unique_ptr<nn::Module> MakeNet(const TrainOptions& options) {
  ManualSeed(options.seed);
  auto net = std::make_unique<nn::Sequential>(
      Network(options.net, options.devices[0]));
  if (options.init == "xavier") {
    nn::InitXavierUniform(*net);
  } else {
    nn::InitNormal(*net, 0.01);
  }
  return net;
}

absl::StatusOr<TrainData> LoadData(const TrainOptions& options) {
  TrainData data;
  if (options.data_dir.empty()) {
    const std::int64_t test = std::max<std::int64_t>(10, options.images / 6);
    data.training = GenerateImages(options.images);
    data.test = GenerateImages(test, /*seed=*/0, /*first=*/options.images);
  } else {
    for (const auto& [dataset, split] :
         {std::pair{&data.training, DatasetSplit::kTraining},
          {&data.test, DatasetSplit::kTest}}) {
      absl::StatusOr<Dataset> loaded =
          LoadFashionMnist(options.data_dir, split);
      if (!loaded.ok()) return loaded.status();
      *dataset = *std::move(loaded);
    }
  }
  if (data.training.size() == 0 || data.test.size() == 0) {
    return absl::InvalidArgumentError(Say(
        "%s has %d images to train on and %d to test on; at least one of each "
        "is needed. Name another --data_dir, or none for generated images.",
        data.training.name, data.training.size(), data.test.size()));
  }
  data.training_fingerprint = Fingerprint(data.training);
  data.test_fingerprint = Fingerprint(data.test);
  return data;
}

}  // namespace d2l
