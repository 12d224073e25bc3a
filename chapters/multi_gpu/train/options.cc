#include "chapters/multi_gpu/train/options.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/base/console/command_line.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/data/dataset.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/parallel/mpi/mpi_world.h"

ABSL_FLAG(std::string, net, "lenet",
          "The network: lenet, resnet18, mlp (784-256-10) or linear. An image "
          "costs resnet18 200 times what it costs lenet: use fewer --images, "
          "and --lr=0.1.\n"
          "Example: --net=linear");
ABSL_FLAG(std::string, init, "xavier",
          "Its first weights: xavier, or book: N(0, 0.01), with which LeNet "
          "and --lr=0.2 stay at chance for about 970 steps; xavier leaves it "
          "in about 35.\n"
          "Example: --init=book");
ABSL_FLAG(std::int64_t, epochs, 10,
          "How often to go through the training images.\n"
          "Example: --epochs=20");
ABSL_FLAG(std::int64_t, batch_size, 256,
          "Images in a step.\n"
          "Example: --batch_size=128");
ABSL_FLAG(double, lr, 0.2,
          "The learning rate of SGD. Too large a one ends in NaN.\n"
          "Example: --lr=0.1");
ABSL_FLAG(double, momentum, 0,
          "The momentum of SGD, from 0 up to but not including 1.\n"
          "Example: --momentum=0.9 --lr=0.02");
ABSL_FLAG(std::uint64_t, seed, 0,
          "Of the first weights and of the order of the images. The same seed "
          "gives the same numbers.\n"
          "Example: --seed=1");
ABSL_FLAG(std::string, data_dir, "",
          "A directory with Fashion-MNIST's four files, gzipped or not: "
          "train-images-idx3-ubyte and so on. None: images are generated. "
          "Relative to the directory in which you typed the command.\n"
          "Example: --data_dir=fashion");
ABSL_FLAG(std::int64_t, images, 12000,
          "How many images to generate for training; a sixth as many are for "
          "testing.\n"
          "Example: --images=60000");
ABSL_FLAG(std::string, save, "",
          "Write a checkpoint to this file after each epoch and at Ctrl-C. "
          "None: that of --resume; if there is none either, Ctrl-C writes "
          "NET_interrupted.safetensors. PyTorch loads its weights with "
          "net.load_state_dict(safetensors.torch.load_file("
          "\"lenet.safetensors\"), strict=False), which leaves out the "
          "momentum.\n"
          "Example: --save=lenet.safetensors");
ABSL_FLAG(std::string, resume, "",
          "Go on from this checkpoint, as if the training had never stopped. "
          "Flags that change the numbers and are not given are those it was "
          "made with; --epochs, --lr and --data_dir may be others.\n"
          "Example: --resume=lenet.safetensors");
ABSL_FLAG(std::string, devices, "auto",
          "What to run on. auto: a GPU, or else all cores as cpu:0; with "
          "--num_gpus=4, four GPUs, or else cpu:0 to cpu:3. Several processes "
          "exchange what is on CPU devices.\n"
          "Example: --devices=cpu:0,cpu:1");
ABSL_FLAG(int, num_gpus, 0,
          "How many of the devices to train on, each with a part of every "
          "batch. 0: all that --devices lists; with auto, one. Of several "
          "processes: the devices of all of them.\n"
          "Example: --num_gpus=2");
ABSL_FLAG(std::string, allreduce, "split",
          "How several devices add up their gradients: split, star, ring or "
          "bidirectional_ring; in one process host, too, or nccl: NVIDIA's "
          "library, where each device is a GPU of its own; between processes "
          "mpi, too: MPI_Allreduce.\n"
          "Example: --allreduce=ring --num_gpus=2");
ABSL_FLAG(std::string, split, "",
          "How much of a batch each device gets, in proportion. None: all the "
          "same.\n"
          "Example: --split=3:1 --num_gpus=2");
ABSL_FLAG(int, max_in_flight, 2,
          "How many steps the devices may be behind the program.\n"
          "Example: --max_in_flight=1 --num_gpus=2");
ABSL_FLAG(
    std::string, shard, "none",
    "What each of several devices holds a shard of, instead of all: none, "
    "optimizer (the momentum), gradients (and that) or parameters (and "
    "both). The numbers stay the same. In several processes, parameters want "
    "one device in each.\n"
    "Example: --shard=parameters --num_gpus=2");
ABSL_FLAG(bool, report_memory, false,
          "Say at the end what each device's memory was for in a step, and "
          "what a formula says.\n"
          "Example: --report_memory");
ABSL_FLAG(std::int64_t, device_memory_mb, 0,
          "How much memory to take from each device, in MiB, as if it had no "
          "more. 0: all that there is.\n"
          "Example: --device_memory_mb=64");
ABSL_FLAG(double, mpi_timeout_s, 60,
          "In several processes (mpirun): after so many seconds without an "
          "answer a process is given up, and all end; 20 at least for one "
          "that has to start.\n"
          "Example: --mpi_timeout_s=10");
ABSL_FLAG(std::int64_t, check_every, 100,
          "In several processes: after so many steps they compare their "
          "parameters, and end if these differ.\n"
          "Example: --check_every=1000");
ABSL_FLAG(std::string, lang, "",
          "What to speak: en (English) or zh (Chinese). Empty: Chinese if "
          "LC_ALL, LC_MESSAGES or LANG begins with zh.\n"
          "Example: --lang=zh");
ABSL_FLAG(std::string, json, "",
          "Also write options, curves and seconds to this file.\n"
          "Example: --json=lenet.json");
ABSL_FLAG(std::string, svg, "",
          "Also write the curves to this file, as a picture that a browser "
          "shows.\n"
          "Example: --svg=lenet.svg");

namespace d2l {
namespace {

const std::vector<const char*> kFlags = {"net",
                                         "init",
                                         "epochs",
                                         "batch_size",
                                         "lr",
                                         "momentum",
                                         "seed",
                                         "data_dir",
                                         "images",
                                         "save",
                                         "resume",
                                         "devices",
                                         "num_gpus",
                                         "allreduce",
                                         "split",
                                         "max_in_flight",
                                         "shard",
                                         "report_memory",
                                         "device_memory_mb",
                                         "mpi_timeout_s",
                                         "check_every",
                                         "lang",
                                         "json",
                                         "svg"};

// A checkpoint keeps these; only the second list may change on resuming.
constexpr const char* kFixed[] = {"net",  "init",     "batch_size", "momentum",
                                  "seed", "num_gpus", "allreduce",  "split"};
constexpr const char* kMayChange[] = {"epochs", "lr", "data_dir", "images"};

absl::Status CheckRanges() {
  const absl::Status named = CheckNet();
  if (!named.ok()) return named;
  const std::int64_t memory = absl::GetFlag(FLAGS_device_memory_mb);
  for (const auto& [flag, value] :
       {std::pair<std::string, std::int64_t>{"epochs",
                                             absl::GetFlag(FLAGS_epochs)},
        {"batch_size", absl::GetFlag(FLAGS_batch_size)},
        {"images", absl::GetFlag(FLAGS_images)},
        {"device_memory_mb", memory == 0 ? 1 : memory},
        {"max_in_flight", absl::GetFlag(FLAGS_max_in_flight)},
        {"check_every", absl::GetFlag(FLAGS_check_every)}}) {
    if (value >= 1) continue;
    return absl::InvalidArgumentError(
        Say("--%s=%d asked for; the least is 1. Say --%s=1 or more.", flag,
            value, flag));
  }
  const double timeout = absl::GetFlag(FLAGS_mpi_timeout_s);
  if (!(timeout > 0)) {
    return absl::InvalidArgumentError(Say(
        "--mpi_timeout_s=%g asked for; it is a number of seconds above 0. Say "
        "--mpi_timeout_s=60.",
        timeout));
  }
  const double lr = absl::GetFlag(FLAGS_lr);
  if (!(lr > 0 && std::isfinite(lr))) {
    return absl::InvalidArgumentError(
        Say("--lr=%g asked for; it is a number above 0. Say --lr=0.2.", lr));
  }
  const double momentum = absl::GetFlag(FLAGS_momentum);
  if (!(momentum >= 0 && momentum < 1)) {
    return absl::InvalidArgumentError(
        Say("--momentum=%g asked for; it is at least 0 and below "
            "1. Say --momentum=0.9.",
            momentum));
  }
  return absl::OkStatus();
}

// Linux promises more memory than exists, and kills a process that uses it.
absl::Status CheckMemory() {
  if (!absl::GetFlag(FLAGS_data_dir).empty()) return absl::OkStatus();
  // Includes a sixth to test on, and the process's copy of its part of that.
  constexpr double kBytes = (kImagePixels + 1) * (1 + 2 / 6.0);
  const std::int64_t images = absl::GetFlag(FLAGS_images);
  const std::int64_t free = CpuBackend().FreeMemory(0);
  const double bytes = static_cast<double>(images) * kBytes;
  if (bytes <= static_cast<double>(free)) return absl::OkStatus();
  return absl::ResourceExhaustedError(Say(
      "--images=%d asked for, which take %.3g GB of memory; %.3g GB are free. "
      "Say --images=%d, or fewer.",
      images, bytes / 1e9, static_cast<double>(free) / 1e9,
      std::max<std::int64_t>(1, free / static_cast<int>(2 * kBytes))));
}

// Sets the flags to the checkpoint's values, except those that were given.
absl::Status TakeOptions(const std::string& file, int argc, char** argv) {
  const auto checkpoint = LoadCheckpointHeader(UserPath(file));
  if (!checkpoint.ok()) return checkpoint.status();
  std::map<std::string, std::string> kept;
  const auto take = [&](const char* name) {
    const auto option = checkpoint->options.find(name);
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    std::string error;
    if (option == checkpoint->options.end() ||
        !flag->ParseFrom(option->second, &error)) {
      return absl::InvalidArgumentError(
          Say("%s is no checkpoint of this program: it does not "
              "say a --%s that can be. %s",
              file, std::string(name), error));
    }
    kept[name] = flag->CurrentValue();
    return absl::OkStatus();
  };
  absl::Status status;
  for (const char* name : kFixed) status.Update(take(name));
  for (const char* name : kMayChange) status.Update(take(name));
  if (!status.ok()) return status;
  absl::ParseCommandLine(argc, argv);  // again: given flags have priority
  for (const char* name : kFixed) {
    const std::string typed = absl::FindCommandLineFlag(name)->CurrentValue();
    if (typed == kept[name]) continue;
    return absl::InvalidArgumentError(Say(
        "--%s=%s asked for; the training in %s has --%s=%s. Leave the flag out "
        "to go on with it, or --resume to begin anew.",
        std::string(name), typed, file, std::string(name), kept[name]));
  }
  return absl::OkStatus();
}

// Quotes the word for a shell's command.
std::string Quoted(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("_-+.,:/=@%", c);
  });
  if (plain && !word.empty()) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::map<std::string, std::string> TrainOptions::ForCheckpoint() const {
  std::map<std::string, std::string> kept;
  for (const char* name : kFixed) {
    kept[name] = absl::FindCommandLineFlag(name)->CurrentValue();
  }
  for (const char* name : kMayChange) {
    kept[name] = absl::FindCommandLineFlag(name)->CurrentValue();
  }
  // Also if --devices gave the number: --resume alone needs as many.
  kept["num_gpus"] = absl::StrCat(devices.size() * processes);
  if (!data_dir.empty()) kept["data_dir"] = std::filesystem::absolute(data_dir);
  return kept;
}

std::map<std::string, std::string> TrainOptions::SameInAllProcesses() const {
  std::map<std::string, std::string> same;
  for (const auto& [name, value] : ForCheckpoint()) same["--" + name] = value;
  same.erase("--data_dir");  // each process may have its own copy of the data
  for (const char* name : {"save", "resume", "max_in_flight", "check_every",
                           "shard", "report_memory"}) {
    same[absl::StrCat("--", name)] =
        absl::FindCommandLineFlag(name)->CurrentValue();
  }
  return same;
}

std::string TrainOptions::CommandToResume(const std::string& file) const {
  std::string command = "bazel run //chapters/multi_gpu:train --";
  if (processes > 1) {
    command = absl::StrCat("mpirun -np ", processes, " ", Quoted(program));
  }
  absl::StrAppend(&command, " --resume=", Quoted(file));
  for (const char* name : {"save", "devices", "max_in_flight", "shard",
                           "report_memory", "device_memory_mb", "json", "svg",
                           "mpi_timeout_s", "check_every", "lang"}) {
    absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
    const std::string value = flag->CurrentValue();
    if (value == flag->DefaultValue() || value == file) continue;
    absl::StrAppend(&command, " --", name, "=", Quoted(value));
  }
  return command;
}

absl::StatusOr<TrainOptions> ParseTrainOptions(int argc, char** argv,
                                               int process, int processes) {
  TrainOptions options;
  options.processes = processes;
  options.program = argv[0];
  absl::Status status = CheckFlagNames(argc, argv, kFlags);
  if (!status.ok()) return status;
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  status = SetLanguage(absl::GetFlag(FLAGS_lang));
  if (!status.ok()) return status;
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(
        Say("\"%s\" is not a flag; they all look like --net=lenet. See --help.",
            std::string(rest[1])));
  }
  options.resume = absl::GetFlag(FLAGS_resume);
  if (!options.resume.empty()) {
    status = TakeOptions(options.resume, argc, argv);
    if (!status.ok()) return status;
  }
  DeviceOptions device_options;
  const int asked = absl::GetFlag(FLAGS_num_gpus) / processes;
  device_options.min_devices = std::clamp(asked, 1, kMaxDevices);
  status = InitializeDevices(absl::GetFlag(FLAGS_devices), device_options);
  if (!status.ok()) return status;

  if (!options.resume.empty()) {
    absl::StatusOr<Checkpoint> checkpoint =
        LoadCheckpoint(UserPath(options.resume), Devices()[0].device);
    if (!checkpoint.ok()) return checkpoint.status();
    options.checkpoint = *std::move(checkpoint);
  }
  status = CheckRanges();
  status.Update(CheckMemory());
  status.Update(TakeDevices(&options));
  if (!status.ok()) return status;
  options.net = absl::GetFlag(FLAGS_net);
  options.init = absl::GetFlag(FLAGS_init);
  options.epochs = absl::GetFlag(FLAGS_epochs);
  options.batch_size = absl::GetFlag(FLAGS_batch_size);
  options.lr = absl::GetFlag(FLAGS_lr);
  options.momentum = absl::GetFlag(FLAGS_momentum);
  options.seed = absl::GetFlag(FLAGS_seed);
  options.data_dir = UserPath(absl::GetFlag(FLAGS_data_dir));
  options.images = absl::GetFlag(FLAGS_images);
  options.mpi_timeout_s = absl::GetFlag(FLAGS_mpi_timeout_s);
  options.check_every = absl::GetFlag(FLAGS_check_every);
  options.parallel.measure_memory = absl::GetFlag(FLAGS_report_memory);
  options.save = absl::GetFlag(FLAGS_save);
  if (options.save.empty()) options.save = options.resume;
  if (process > 0) return options;
  std::optional<AtomicFile> save;  // Only tried: it is written repeatedly.
  status = OpenFlagFiles({{"save", options.save, &save},
                          {"json", absl::GetFlag(FLAGS_json), &options.json},
                          {"svg", absl::GetFlag(FLAGS_svg), &options.svg}});
  if (!status.ok()) return status;
  return options;
}

double MpiTimeout(int argc, char** argv) {
  if (CheckFlagNames(argc, argv, kFlags).ok()) {
    absl::ParseCommandLine(argc, argv);
  }
  const double timeout = absl::GetFlag(FLAGS_mpi_timeout_s);
  return timeout > 0 ? timeout : 60;
}

std::string TrainHelp() {
  return FlagHelp("bazel run //chapters/multi_gpu:train", kFlags);
}

}  // namespace d2l
