// Checkpoint: a training run in a file. A resumed run computes the same numbers
// as an unbroken run, bit for bit.
//
//   Checkpoint checkpoint;
//   checkpoint.options["batch_size"] = "256";
//   checkpoint.progress = progress;
//   checkpoint.state = CopyState(net, sgd, {device});
//   absl::Status saved = SaveCheckpoint(checkpoint, "lenet.safetensors");
//   auto loaded = LoadCheckpoint("lenet.safetensors", device);
//   absl::Status restored = RestoreState(loaded->state, net, sgd, {device});
//
// The file is one of safetensors, replaced atomically: the network's tensors by
// their names in its state dict, "momentum.NAME", and as metadata, in JSON, the
// options, the progress and the states of the random generators. So
// nn::LoadStateDict and PyTorch load the network with strict=false, which
// ignores the momentum.
//
// Files may be untrusted. Errors of files are an absl::Status that names the
// file and the reason; if the operation that computes a tensor failed,
// AsyncError is thrown. Values own what they hold. Thread-safety: as of the
// module and the optimiser.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_CHECKPOINT_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_CHECKPOINT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/creation.h"
#include "common/safetensors/safetensors.h"

namespace d2l {

struct EpochRecord {
  double seconds = 0;  // of training
  double loss = 0;     // the mean over the samples, while they were trained on
  double training_accuracy = 0;  // likewise
  double test_accuracy = 0;
};

struct TrainingProgress {
  std::vector<EpochRecord> epochs;  // the finished ones
  LoaderPosition next;              // the batch to train on next
  // The sums so far over the epoch of `next`.
  std::int64_t samples = 0;
  std::int64_t right = 0;  // predictions before each sample's step
  double loss_sum = 0;
  double seconds = 0;
};

// Everything that the next steps depend on, besides the data.
struct TrainingState {
  safetensors::NamedTensors tensors;
  std::vector<GeneratorState> generators;  // of the devices
};

// Copies the state; asynchronous.
TrainingState CopyState(const nn::Module& net, nn::SGD& sgd,
                        const std::vector<Device>& devices);
// Writes to the parameters' memory. InvalidArgument, before anything is
// changed, if the state is of another network or another number of devices.
absl::Status RestoreState(const TrainingState& state, nn::Module& net,
                          nn::SGD& sgd, const std::vector<Device>& devices);

struct Checkpoint {
  // The program's options. A file's are printable text of at most 1000 columns.
  std::map<std::string, std::string> options;
  TrainingProgress progress;
  TrainingState state;
};

absl::Status SaveCheckpoint(const Checkpoint& checkpoint,
                            const std::string& path);
// The tensors are on `device`.
absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path,
                                          Device device);
// Loads no tensors and needs no device table, which may depend on the options.
absl::StatusOr<Checkpoint> LoadCheckpointHeader(const std::string& path);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_CHECKPOINT_H_
