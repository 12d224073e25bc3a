#include "chapters/multi_gpu/train_devices.h"

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
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/parallel/collective.h"
#include "common/parallel/schedule.h"
#include "common/parallel/split_batch.h"

ABSL_DECLARE_FLAG(std::string, devices);
ABSL_DECLARE_FLAG(int, num_gpus);
ABSL_DECLARE_FLAG(std::string, allreduce);
ABSL_DECLARE_FLAG(std::string, split);
ABSL_DECLARE_FLAG(int, max_in_flight);

namespace d2l {
namespace {

// Sums in a CPU device's memory need one.
absl::Status CheckHost(const TrainOptions& options) {
  std::string named;
  for (const DeviceInfo& info : Devices()) {
    if (info.device.type() == DeviceType::kCpu) return absl::OkStatus();
  }
  for (const Device device : options.devices) {
    absl::StrAppend(&named, DeviceTypeName(device.type()), ":",
                    GetDeviceInfo(device).physical_index, ",");
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "--allreduce=host asked for, which adds in a CPU device's memory; "
      "--devices=%s has none. Say --devices=%scpu:0 --num_gpus=%d.",
      absl::GetFlag(FLAGS_devices), named, options.devices.size()));
}

absl::Status TakeAllReduce(TrainOptions* options) {
  const std::string name = absl::GetFlag(FLAGS_allreduce);
  options->by_mpi = name == "mpi";
  if (options->by_mpi && options->processes == 1) {
    return absl::InvalidArgumentError(
        "--allreduce=mpi asked for, which adds between processes; this is one. "
        "Start several, mpirun -np 2 bazel-bin/chapters/multi_gpu/train, or "
        "say --allreduce=split.");
  }
  if (options->by_mpi) return absl::OkStatus();
  const auto algorithm = ParseAllReduceAlgorithm(name);
  if (!algorithm.ok()) return algorithm.status();
  options->parallel.allreduce = *algorithm;
  if (*algorithm == AllReduceAlgorithm::kNccl) {
    const absl::Status status = CheckNccl(options->devices);
    if (status.ok()) return status;
    return absl::Status(
        status.code(),
        absl::StrCat("--allreduce=nccl asked for; ", status.message(), "."));
  }
  if (options->processes > 1 &&
      options->devices[0].type() != DeviceType::kCpu) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--allreduce=%s asked for, by which %d processes exchange what is on "
        "CPU devices; this one has %s. Say --devices=cpu:0, or "
        "--allreduce=nccl with a GPU for each.",
        name, options->processes, options->devices[0].ToString()));
  }
  if (*algorithm != AllReduceAlgorithm::kHost) return absl::OkStatus();
  if (options->processes > 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--allreduce=host asked for, which adds in the memory of one process; "
        "there are %d. Say --allreduce=split.",
        options->processes));
  }
  return options->devices.size() > 1 ? CheckHost(*options) : absl::OkStatus();
}

}  // namespace

absl::Status TakeDevices(TrainOptions* options) {
  const int there = static_cast<int>(Devices().size());
  const int in_all = absl::GetFlag(FLAGS_num_gpus);
  const int asked = in_all / options->processes;  // in this process
  const std::string list = absl::GetFlag(FLAGS_devices);
  if (asked > there && !options->resume.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the training in %s is on %d devices; --devices=%s has %d. Leave "
        "--devices out, or name as many.",
        options->resume, in_all,
        absl::StrCat(list, options->processes > 1 ? " in each process" : ""),
        there));
  }
  if (in_all % options->processes != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%d devices asked for by %s; %d processes cannot have as many each. "
        "Start %d processes with one each: mpirun -np %d",
        in_all,
        options->resume.empty() ? absl::StrCat("--num_gpus=", in_all)
                                : options->resume,
        options->processes, in_all, in_all));
  }
  if (asked < 0 || asked > there) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--num_gpus=%d asked for; --devices=%s has %d. Say --num_gpus=%d, or "
        "name more devices, such as --devices=cpu:0,cpu:1.",
        asked, list, there, there));
  }
  const int count = asked > 0 ? asked : list == "auto" ? 1 : there;
  for (int i = 0; i < count; ++i) {
    options->devices.push_back(Devices()[i].device);
  }
  const absl::Status status = TakeAllReduce(options);
  if (!status.ok()) return status;
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

std::string DevicesOfProcess(const std::string& devices, int count, int process,
                             int gpus) {
  const int first = process * count;
  if (devices != "auto" || process == 0 || first + count > gpus) {
    return devices;
  }
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.push_back(absl::StrCat("cuda:", first + i));
  }
  return absl::StrJoin(names, ",");
}

}  // namespace d2l
