// The parts of train.cc: its flags and what they name, a training in a file,
// and the processes that train together.
//
//   auto processes = Processes::Start(/*timeout_seconds=*/60);
//   absl::StatusOr<TrainOptions> options =
//       ParseTrainOptions(argc, argv, **processes);
//   (*processes)->Agree(options.status());  // all go on, or all throw
//   Checkpoint checkpoint = {options->ForCheckpoint(), progress};
//   absl::Status saved = SaveCheckpoint(checkpoint, net, sgd, options->save);
//
// Errors that a user can mend are an absl::Status, which says what was
// requested, what exists and what to type instead. Thread-safety: none.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_TRAIN_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_TRAIN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/mpi/mpi_world.h"

namespace d2l {

// ---- checkpoint.cc: a training in a file, which may be untrusted.

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

// A resumed training computes the same numbers as an unbroken one, bit for bit:
// the order of the images is a function of the epoch, and no network of train
// draws random numbers.
struct Checkpoint {
  // Values of flags. A file's are printable text of at most 1000 columns.
  std::map<std::string, std::string> options;
  TrainingProgress progress;
};

// Replaces the file atomically. It is one of safetensors: the network's tensors
// by their names in its state dict, "momentum.NAME", and the rest as metadata,
// in JSON. So PyTorch loads the network with strict=False, which ignores the
// momentum.
absl::Status SaveCheckpoint(const Checkpoint& checkpoint, const nn::Module& net,
                            nn::SGD& sgd, const std::string& path);
// Reads no tensors.
absl::StatusOr<Checkpoint> LoadCheckpoint(const std::string& path);
// Writes the file's tensors to the parameters' memory, and sets the momentum.
// InvalidArgument, before anything is changed, if they are another network's.
absl::Status LoadState(const std::string& path, nn::Module& net, nn::SGD& sgd);

// ---- options.cc

// Flags that were not given have the values of the checkpoint to resume.
struct TrainOptions {
  std::string net, init;
  std::int64_t epochs = 0, batch_size = 0;
  double lr = 0, momentum = 0;
  std::string data_dir;                  // "": generated images
  std::int64_t images = 0;               // the number of generated images
  std::string save, resume;              // as typed; "" for none
  std::optional<Checkpoint> checkpoint;  // to resume
  // The devices of the training, the first of the device table. The first
  // device has the batches.
  std::vector<Device> devices;
  DataParallelOptions parallel;
  int processes = 1;
  std::string program;  // as it was started

  std::map<std::string, std::string> ForCheckpoint() const;
  // The shell command that resumes from a checkpoint.
  std::string CommandToResume(const std::string& file) const;
};

class Processes;
// Makes the device table; the first process tries to open the file to save.
absl::StatusOr<TrainOptions> ParseTrainOptions(int argc, char** argv,
                                               const Processes& processes);
// The flags that processes that train one network must have in common.
std::map<std::string, std::string> SameInAllProcesses();
// --mpi_timeout_s, needed before ParseTrainOptions; 60 if it is wrong.
double MpiTimeout(int argc, char** argv);
std::string TrainHelp();

// The network, with its initial values.
std::unique_ptr<nn::Module> MakeNet(const TrainOptions& options);

struct TrainData {
  Dataset training;
  Dataset test;
  std::string fingerprint;  // "12000 + 2000, fnv1a 57ab…", of the images alone
};

// Fashion-MNIST's files, or generated images, a sixth as many to test on.
absl::StatusOr<TrainData> LoadData(const TrainOptions& options);

// ---- processes.cc

// All processes throw it. The message is empty in those that leave printing to
// another process.
class CommonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The signal that was received; 0 if none was.
int StopSignal();

// The processes that mpirun started, which make the same calls in the same
// order. Without mpirun there is only this one, and all sums and comparisons
// are over it alone. A failure between processes throws AsyncError or
// std::runtime_error, with the rank that did not answer; then call Fail.
class Processes {
 public:
  // An error if mpirun started several and the program has no MPI. The timeout
  // is for the others' start and for each answer.
  static absl::StatusOr<std::unique_ptr<Processes>> Start(
      double timeout_seconds);

  int rank() const { return world_ == nullptr ? 0 : world_->process(); }
  int size() const { return world_ == nullptr ? 1 : world_->processes(); }
  bool several() const { return size() > 1; }

  // Throws CommonError if any process passes an error, the first such one.
  void Agree(const absl::Status& mine) const;
  // Throws CommonError unless all processes have the same value.
  void CheckSame(const std::string& name, const std::string& value) const;
  std::int64_t Sum(std::int64_t mine) const;
  // Has the processes add up between them; no algorithm: by MPI_Allreduce.
  void Connect(std::optional<AllReduceAlgorithm> algorithm,
               DataParallelOptions* options) const;

  // Records the first Ctrl-C or SIGTERM; the first process says so on stderr,
  // or the second, if the first is on another machine or gone. The second
  // signal ends the program at once.
  void StopOnSignals() const;
  // Sets the text that several processes print if they end early: how to
  // resume, and the current batch.
  void SetHowToGoOn(const std::string& text) { how_to_go_on_ = text; }
  void SetDuring(const std::string& where);

  // Prints to stderr, with the rank if there are several; nothing for "".
  void Complain(const std::string& message) const;
  // Also prints how to resume and ends all processes, if there are several.
  void Fail(const std::string& message) const;

 private:
  explicit Processes(std::unique_ptr<MpiWorld> world)
      : world_(std::move(world)) {}
  std::string Name() const;  // "rank 2 of 4"

  const std::unique_ptr<MpiWorld> world_;  // null without MPI
  std::string how_to_go_on_;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_TRAIN_H_
