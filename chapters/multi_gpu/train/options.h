// The flags of train.cc, their values in a checkpoint, and the devices, the
// network and the images that they name.
//
//   absl::StatusOr<TrainOptions> options = ParseTrainOptions(argc, argv);
//   checkpoint.options = options->ForCheckpoint();
//
// Flags that were not given get the values of the checkpoint that --resume
// names. A given flag that would make it another training must have the
// checkpoint's value: --net, --init, --batch_size, --momentum, --seed,
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
  std::int64_t images = 0;  // the number of generated images
  std::string save;         // as typed; "" for none
  std::string resume;       // likewise
  // Open for writing; no two are the same file.
  std::optional<AtomicFile> json;
  std::optional<AtomicFile> svg;
  // The devices of the training, the first of the device table. The first
  // device has the batches.
  std::vector<Device> devices;
  DataParallelOptions parallel;  // without the part for several processes
  bool by_mpi = false;           // --allreduce=mpi instead of the algorithm
  double mpi_timeout_s = 0;
  std::int64_t check_every = 0;
  int processes = 1;
  std::string program;  // as it was started
  // The checkpoint that --resume names.
  std::optional<Checkpoint> checkpoint;

  std::map<std::string, std::string> ForCheckpoint() const;
  // The flags, with their dashes, that must be the same in all processes that
  // train one network.
  std::map<std::string, std::string> SameInAllProcesses() const;
  // The shell command that resumes from a checkpoint.
  std::string CommandToResume(const std::string& file) const;
};

// Makes the device table. Errors say what was requested, what exists and what
// to type instead. `process` is one of `processes`; only the first opens files.
absl::StatusOr<TrainOptions> ParseTrainOptions(int argc, char** argv,
                                               int process, int processes);

// The value of --mpi_timeout_s, needed before ParseTrainOptions; 60 if it is
// wrong.
double MpiTimeout(int argc, char** argv);

// The text of --help.
std::string TrainHelp();

// These two are for ParseTrainOptions. Fails unless there are a --net and an
// --init of these names.
absl::Status CheckNet();
// Sets the devices of the table that train, and how they add up.
absl::Status TakeDevices(TrainOptions* options);

// The network of --net, with the initial values of --init.
std::unique_ptr<nn::Module> MakeNet(const TrainOptions& options);

struct TrainData {
  Dataset training;
  Dataset test;
  // "12000 images with the SHA-256 57ab…", which depends on the images only,
  // not on their place.
  std::string training_fingerprint;
  std::string test_fingerprint;
};

// Loads Fashion-MNIST's files from --data_dir. Without it, generates --images
// images, and a sixth as many to test on.
absl::StatusOr<TrainData> LoadData(const TrainOptions& options);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_OPTIONS_H_
