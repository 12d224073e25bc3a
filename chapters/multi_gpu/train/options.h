// The flags of train.cc, what a checkpoint says about them, and the devices,
// the network and the images that they name.
//
//   absl::StatusOr<TrainOptions> options = ParseTrainOptions(argc, argv);
//   checkpoint.options = options->ForCheckpoint();
//
// Options that were not typed are those of the checkpoint that --resume names.
// Of those that were, the ones that would make it another training are refused
// unless they are the same: --net, --init, --batch_size, --momentum, --seed,
// --num_gpus, --allreduce and --split.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_OPTIONS_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_OPTIONS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chapters/multi_gpu/train/checkpoint.h"
#include "common/base/files/atomic_file.h"
#include "common/data/dataset.h"
#include "common/device/device.h"
#include "common/nn/module.h"
#include "common/parallel/data_parallel/data_parallel.h"

namespace d2l {

struct TrainOptions {
  std::string net;
  std::string init;
  std::int64_t epochs = 0;
  std::int64_t batch_size = 0;
  double lr = 0;
  double momentum = 0;
  std::uint64_t seed = 0;
  std::string data_dir;     // "": generated images
  std::int64_t images = 0;  // as many
  std::string save;         // as typed; "" for none
  std::string resume;       // likewise
  // Open for writing; no two are the same file.
  std::optional<AtomicFile> json;
  std::optional<AtomicFile> svg;
  // The devices of the training, after the device table has been made: its
  // first ones. The first has the batches.
  std::vector<Device> devices;
  DataParallelOptions parallel;  // but for what is of several processes
  bool by_mpi = false;           // --allreduce=mpi instead of the algorithm
  double mpi_timeout_s = 0;
  std::int64_t check_every = 0;
  int processes = 1;
  std::string program;  // as it was started
  // What --resume names.
  std::optional<Checkpoint> checkpoint;

  std::map<std::string, std::string> ForCheckpoint() const;
  // The flags, with their dashes, on which the processes depend that train one
  // network.
  std::map<std::string, std::string> SameInAllProcesses() const;
  // The command that goes on from a checkpoint, for a shell.
  std::string CommandToResume(const std::string& file) const;
};

// Makes the device table. Errors say what was asked, what is there and what to
// type instead. process: of `processes`; the first one's are the files.
absl::StatusOr<TrainOptions> ParseTrainOptions(int argc, char** argv,
                                               int process, int processes);

// What --mpi_timeout_s says, which counts before ParseTrainOptions; 60 if it is
// wrong.
double MpiTimeout(int argc, char** argv);

// What --help prints.
std::string TrainHelp();

// These three are ParseTrainOptions's. Whether there are a --net and an --init
// of these names.
absl::Status CheckNet();
// The devices of the table that are to train, and how they add up.
absl::Status TakeDevices(TrainOptions* options);
// What --devices means in a process of several on a machine: with "auto" it has
// the `count` GPUs behind those of the processes before it, if there are so
// many that it can see (with CUDA_VISIBLE_DEVICES its own ones).
std::string DevicesOfProcess(const std::string& devices, int count, int process,
                             int gpus);

// The network that --net names, with the initial values that --init does.
std::unique_ptr<nn::Module> MakeNet(const TrainOptions& options);

struct TrainData {
  Dataset training;
  Dataset test;
  // "12000 images with the SHA-256 57ab…", the same for the same images
  // wherever they are.
  std::string training_fingerprint;
  std::string test_fingerprint;
};

// The images of --data_dir, with Fashion-MNIST's files, or, if there is none,
// --images generated ones and a sixth as many to test on.
absl::StatusOr<TrainData> LoadData(const TrainOptions& options);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_OPTIONS_H_
