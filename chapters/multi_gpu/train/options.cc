#include <algorithm>
#include <filesystem>
#include <iterator>
#include <tuple>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "chapters/multi_gpu/train/train.h"
#include "common/base/console/command_line.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/files/fnv1a.h"
#include "common/device/device_table.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/ops/creation.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "common/parallel/nccl/nccl.h"

ABSL_FLAG(std::string, net, "lenet",
          "The network: lenet, resnet18, mlp (784-256-10) or linear. An image "
          "costs resnet18 200 times what it costs lenet: use fewer --images, "
          "and --lr=0.1.\n"
          "Example: --net=linear");
ABSL_FLAG(std::string, init, "xavier",
          "Its first weights: xavier, or book: N(0, 0.01²), with which LeNet "
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
ABSL_FLAG(std::string, split, "",
          "How much of a batch each device gets, in proportion. None: all the "
          "same.\n"
          "Example: --split=3:1 --num_gpus=2");
ABSL_FLAG(std::string, allreduce, "split",
          "How several devices add up their gradients: split, star, ring or "
          "bidirectional_ring; in one process host, too, or nccl: NVIDIA's "
          "library, where each device is a GPU of its own; between processes "
          "mpi, too: MPI_Allreduce.\n"
          "Example: --allreduce=ring --num_gpus=2");
ABSL_FLAG(std::string, shard, "none",
          "What each of several devices holds a shard of, instead of all: "
          "none, optimizer (the momentum) or gradients (and that). The numbers "
          "stay the same.\n"
          "Example: --shard=gradients --num_gpus=2");
ABSL_FLAG(bool, report_memory, false,
          "Say at the end what each device's memory was for in a step, and "
          "what a formula says.\n"
          "Example: --report_memory");
ABSL_FLAG(double, mpi_timeout_s, 60,
          "In several processes (mpirun): after so many seconds without an "
          "answer a process is given up, and all end; 20 at least for one "
          "that has to start.\n"
          "Example: --mpi_timeout_s=10");

namespace d2l {
namespace {

const std::vector<FlagGroup>& Groups() {
  static const auto& groups = *new std::vector<FlagGroup>{
      {"Training", {"net", "init", "batch_size", "lr", "momentum", "epochs"}},
      {"Images", {"images", "data_dir"}},
      {"Checkpoints", {"save", "resume"}},
      {"Devices",
       {"devices", "num_gpus", "split", "allreduce", "shard", "report_memory",
        "mpi_timeout_s"}}};
  return groups;
}

// A checkpoint keeps these, which may not change on resuming, and those that
// may.
constexpr const char* kFixed[] = {
    "net", "init", "batch_size", "momentum", "num_gpus", "allreduce", "split"};
std::vector<std::string> KeptFlags() {
  std::vector<std::string> names = {"epochs", "lr", "data_dir", "images"};
  names.insert(names.end(), std::begin(kFixed), std::end(kFixed));
  return names;
}

std::string ValueOf(const std::string& flag) {
  return absl::FindCommandLineFlag(flag)->CurrentValue();
}
std::string DefaultOf(const std::string& flag) {
  return absl::FindCommandLineFlag(flag)->DefaultValue();
}

// NotFound unless the flag is one of the names.
absl::Status CheckName(const std::string& flag,
                       const std::vector<std::string>& names) {
  const std::string name = ValueOf(flag);
  const std::string nearest = NearestName(name, names);
  if (name == nearest) return absl::OkStatus();
  return absl::NotFoundError(
      Say("--%s=%s asked for; there are %s. Say --%s=%s.", flag, name,
          absl::StrJoin(names, ", "), flag, nearest));
}

absl::Status CheckRanges() {
  absl::Status status =
      CheckName("net", {"lenet", "resnet18", "mlp", "linear"});
  status.Update(CheckName("init", {"xavier", "book"}));
  if (!status.ok()) return status;
  for (const auto& [flag, value, least, most] :
       {std::tuple<std::string, double, double, double>{
            "epochs", absl::GetFlag(FLAGS_epochs), 1, 1e9},
        {"batch_size", absl::GetFlag(FLAGS_batch_size), 1, 1e9},
        {"images", absl::GetFlag(FLAGS_images), 1, 1e7},
        {"lr", absl::GetFlag(FLAGS_lr), 1e-300, 1e300},
        {"momentum", absl::GetFlag(FLAGS_momentum), 0, 0.9999},
        {"mpi_timeout_s", absl::GetFlag(FLAGS_mpi_timeout_s), 0.1, 1e9}}) {
    if (value >= least && value <= most) continue;
    return absl::InvalidArgumentError(
        Say("--%s=%s asked for; it must be from %g to %g. Say --%s=%s.", flag,
            ValueOf(flag), least, most, flag, DefaultOf(flag)));
  }
  return absl::OkStatus();
}

// Sets the flags to the checkpoint's values, except those that were given.
absl::Status TakeOptions(const Checkpoint& checkpoint, const std::string& file,
                         int argc, char** argv) {
  std::map<std::string, std::string> kept;
  for (const std::string& name : KeptFlags()) {
    const auto option = checkpoint.options.find(name);
    std::string error;
    if (option == checkpoint.options.end() ||
        !absl::FindCommandLineFlag(name)->ParseFrom(option->second, &error)) {
      return absl::InvalidArgumentError(
          Say("%s is no checkpoint of this program: it does not say a --%s "
              "that can be. %s",
              file, name, error));
    }
    kept[name] = ValueOf(name);
  }
  absl::ParseCommandLine(argc, argv);  // again: given flags have priority
  for (const std::string name : kFixed) {
    if (ValueOf(name) == kept[name]) continue;
    return absl::InvalidArgumentError(Say(
        "--%s=%s asked for; the training in %s has --%s=%s. Leave the flag out "
        "to go on with it, or --resume to begin anew.",
        name, ValueOf(name), file, name, kept[name]));
  }
  return absl::OkStatus();
}

// Quotes the word for a shell's command, in which it is printable.
std::string Quoted(const std::string& word) {
  if (PrintableText(word) != word) {
    return absl::StrCat("$'",
                        PrintableText(absl::StrReplaceAll(
                            word, {{"\\", "\\\\"}, {"'", "\\'"}})),
                        "'");
  }
  const bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("_-+.,:/=@%", c);
  });
  if (plain && !word.empty()) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

// How the devices add up their gradients, and what they hold a shard of.
absl::Status TakeAllReduce(const Processes& processes, TrainOptions* options) {
  const std::vector<std::string> names =
      processes.several()
          ? std::vector<std::string>{"split", "star", "ring",
                                     "bidirectional_ring", "mpi"}
          : std::vector<std::string>{
                "split", "star", "ring", "bidirectional_ring", "host", "nccl"};
  const std::vector<std::string> shards = {"none", "optimizer", "gradients"};
  absl::Status status = CheckName("allreduce", names);
  status.Update(CheckName("shard", shards));
  const std::string name = absl::GetFlag(FLAGS_allreduce);
  if (status.ok() && name == "nccl") status = CheckNccl(options->devices);
  if (!status.ok()) return status;
  const int ranks =
      static_cast<int>(options->devices.size()) * processes.size();
  if (processes.several() && options->devices[0].type() != DeviceType::kCpu) {
    return absl::InvalidArgumentError(Say(
        "%d processes exchange what is on CPU devices; this one has %s. Say "
        "--devices=cpu:0, or have one process use all GPUs: --num_gpus=%d "
        "without mpirun.",
        processes.size(), options->devices[0].ToString(), ranks));
  }
  std::optional<AllReduceAlgorithm> algorithm;
  if (name != "mpi") algorithm = *ParseAllReduceAlgorithm(name);
  options->parallel.allreduce = algorithm.value_or(AllReduceAlgorithm::kSplit);
  processes.Connect(algorithm, &options->parallel);
  const std::string shard = absl::GetFlag(FLAGS_shard);
  if (shard == "none") return absl::OkStatus();
  if (name != "split" || ranks == 1) {
    return absl::InvalidArgumentError(
        Say("--shard=%s asked for, which takes several devices and "
            "--allreduce=split; there are %d, and --allreduce=%s. Say "
            "--num_gpus=2 without --allreduce, or leave --shard out.",
            shard, ranks, name));
  }
  options->parallel.shard = static_cast<Shard>(
      std::find(shards.begin(), shards.end(), shard) - shards.begin());
  // Two buckets of this size are held whole.
  options->parallel.bucket_bytes = options->parallel.first_bucket_bytes;
  return absl::OkStatus();
}

// Sets the devices of the table that train, and how they add up.
absl::Status TakeDevices(const Processes& all, TrainOptions* options) {
  const int each = static_cast<int>(Devices().size());
  const int asked = absl::GetFlag(FLAGS_num_gpus);
  const int processes = all.size();
  if (asked < 0 || asked % processes != 0 || asked / processes > each) {
    return absl::InvalidArgumentError(Say(
        "--num_gpus=%d asked for%s; --devices=%s has %d%s. Name as many, "
        "such as --devices=cpu:0,cpu:1, or start as many processes with "
        "one each: mpirun -np %d.",
        asked, options->resume.empty() ? "" : Say(" by %s", options->resume),
        absl::GetFlag(FLAGS_devices), each,
        processes == 1 ? "" : Say(" in each of %d processes", processes),
        std::max(asked, 1)));
  }
  const bool one = absl::GetFlag(FLAGS_devices) == "auto";
  const int count = asked > 0 ? asked / processes : one ? 1 : each;
  for (int i = 0; i < count; ++i) {
    options->devices.push_back(Devices()[i].device);
  }
  const absl::Status status = TakeAllReduce(all, options);
  const std::string split = absl::GetFlag(FLAGS_split);
  if (!status.ok() || split.empty()) return status;
  absl::StatusOr<std::vector<int>> weights =
      ParseSplit(split, count * processes);
  if (!weights.ok()) return weights.status();
  options->parallel.split = *std::move(weights);
  return absl::OkStatus();
}

// Tries --save, and refuses a file of the data.
absl::Status TrySave(const TrainOptions& options) {
  std::vector<std::string> read;
  for (const char* part : {"train-images-idx3", "train-labels-idx1",
                           "t10k-images-idx3", "t10k-labels-idx1"}) {
    for (const char* ending : {"-ubyte", "-ubyte.gz"}) {
      read.push_back(absl::StrCat(options.data_dir, "/", part, ending));
    }
  }
  std::optional<AtomicFile> save;
  const FlagFile file = {"save", options.save, &save};
  const absl::Status status = CheckNotRead(file, read);
  return status.ok() ? OpenFlagFiles({file}) : status;
}

}  // namespace

std::map<std::string, std::string> TrainOptions::ForCheckpoint() const {
  std::map<std::string, std::string> kept;
  for (const std::string& name : KeptFlags()) kept[name] = ValueOf(name);
  // Also if --devices gave the number: --resume alone needs as many.
  kept["num_gpus"] = absl::StrCat(devices.size() * processes);
  if (!data_dir.empty()) kept["data_dir"] = std::filesystem::absolute(data_dir);
  return kept;
}

std::map<std::string, std::string> SameInAllProcesses() {
  std::map<std::string, std::string> same;
  for (const std::string name : FlagNames(Groups())) {
    // Each process may have its own copy of the data.
    if (name != "data_dir") same["--" + name] = ValueOf(name);
  }
  return same;
}

std::string TrainOptions::CommandToResume(const std::string& file) const {
  std::string command = "bazel run //chapters/multi_gpu:train --";
  if (processes > 1) {
    command = absl::StrCat("mpirun -np ", processes, " ", Quoted(program));
  }
  absl::StrAppend(&command, " --resume=", Quoted(file));
  for (const char* name :
       {"save", "devices", "shard", "report_memory", "mpi_timeout_s"}) {
    const std::string value = ValueOf(name);
    if (value == DefaultOf(name) || value == file) continue;
    absl::StrAppend(&command, " --", name, "=", Quoted(value));
  }
  return command;
}

absl::StatusOr<TrainOptions> ParseTrainOptions(int argc, char** argv,
                                               const Processes& processes) {
  TrainOptions options;
  options.processes = processes.size();
  options.program = argv[0];
  absl::Status status = CheckFlagNames(argc, argv, FlagNames(Groups()));
  if (!status.ok()) return status;
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(
        Say("\"%s\" is not a flag; they all look like --net=lenet. See --help.",
            std::string(rest[1])));
  }
  options.resume = absl::GetFlag(FLAGS_resume);
  if (!options.resume.empty()) {
    absl::StatusOr<Checkpoint> checkpoint =
        LoadCheckpoint(UserPath(options.resume));
    if (!checkpoint.ok()) return checkpoint.status();
    status = TakeOptions(*checkpoint, options.resume, argc, argv);
    if (!status.ok()) return status;
    options.checkpoint = *std::move(checkpoint);
  }
  DeviceOptions device_options;
  device_options.min_devices = std::clamp(
      absl::GetFlag(FLAGS_num_gpus) / processes.size(), 1, kMaxDevices);
  status = InitializeDevices(absl::GetFlag(FLAGS_devices), device_options);
  if (status.ok()) status = CheckRanges();
  if (status.ok()) status = TakeDevices(processes, &options);
  if (!status.ok()) return status;
  options.net = absl::GetFlag(FLAGS_net);
  options.init = absl::GetFlag(FLAGS_init);
  options.epochs = absl::GetFlag(FLAGS_epochs);
  options.batch_size = absl::GetFlag(FLAGS_batch_size);
  options.lr = absl::GetFlag(FLAGS_lr);
  options.momentum = absl::GetFlag(FLAGS_momentum);
  options.data_dir = UserPath(absl::GetFlag(FLAGS_data_dir));
  options.images = absl::GetFlag(FLAGS_images);
  options.parallel.measure_memory = absl::GetFlag(FLAGS_report_memory);
  options.save = absl::GetFlag(FLAGS_save);
  if (options.save.empty()) options.save = options.resume;
  if (processes.rank() == 0) status = TrySave(options);
  if (!status.ok()) return status;
  return options;
}

double MpiTimeout(int argc, char** argv) {
  if (CheckFlagNames(argc, argv, FlagNames(Groups())).ok()) {
    absl::ParseCommandLine(argc, argv);
  }
  const double timeout = absl::GetFlag(FLAGS_mpi_timeout_s);
  return timeout > 0 ? timeout : 60;
}

std::string TrainHelp() {
  return FlagHelp("bazel run //chapters/multi_gpu:train", Groups());
}

std::unique_ptr<nn::Module> MakeNet(const TrainOptions& options) {
  ManualSeed(0);
  const Device device = options.devices[0];
  auto net = std::make_unique<nn::Sequential>(
      options.net == "lenet" ? nn::LeNet(device)
      : options.net == "resnet18"
          ? nn::ResNet18(/*num_classes=*/10, /*in_channels=*/1, device)
      : options.net == "mlp"
          ? nn::Sequential(nn::Flatten(), nn::Linear(784, 256, device),
                           nn::ReLU(), nn::Linear(256, 10, device))
          : nn::Sequential(nn::Flatten(), nn::Linear(784, 10, device)));
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
    auto training = LoadFashionMnist(options.data_dir, DatasetSplit::kTraining);
    if (!training.ok()) return training.status();
    auto test = LoadFashionMnist(options.data_dir, DatasetSplit::kTest);
    if (!test.ok()) return test.status();
    data = {*std::move(training), *std::move(test), ""};
  }
  if (data.training.size() == 0 || data.test.size() == 0) {
    return absl::InvalidArgumentError(Say(
        "%s has %d images to train on and %d to test on; at least one of each "
        "is needed. Name another --data_dir, or none for generated images.",
        data.training.name, data.training.size(), data.test.size()));
  }
  Fnv1a hash;
  for (const Dataset* set : {&data.training, &data.test}) {
    for (const std::vector<std::uint8_t>* part : {&set->images, &set->labels}) {
      hash.Update({reinterpret_cast<const char*>(part->data()), part->size()});
    }
  }
  data.fingerprint = absl::StrFormat("%d + %d, fnv1a %s", data.training.size(),
                                     data.test.size(), hash.Hex());
  return data;
}

}  // namespace d2l
