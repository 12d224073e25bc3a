// Trainer: trains a network on minibatches, epoch by epoch.
//
//   DataLoader batches(data, {/*batch_size=*/256}, device);
//   nn::SGD sgd(nn::Parameters(net), {/*lr=*/0.2});
//   Trainer trainer(net, sgd, batches);
//   absl::StatusOr<bool> over = trainer.RunEpoch();
//   if (!over.ok()) std::cerr << over.status().message() << "\n";
//   trainer.FinishEpoch(*Accuracy(net, test_batches));
//   trainer.progress().epochs.back().test_accuracy;
//
// The host runs ahead of the device: loss and accuracy are added up there, and
// read every kStepsPerLook steps, as they were so many steps before. At most
// twice as many steps are in flight.
//
// A loss or parameter that is not finite ends RunEpoch with a status. It names
// the epoch, the batch and the first operation with such a result, which it
// finds by going back to the last look and training on from there, with checks;
// the network is then as it was before that batch.
//
// Ownership: network, optimiser and batches outlive the trainer. Thread-safety:
// none. Errors: a failed operation throws AsyncError; the constructor throws
// std::invalid_argument for parameters that are not on the batches' device.

#ifndef D2L_COMMON_TRAINING_TRAINER_H_
#define D2L_COMMON_TRAINING_TRAINER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/tensor/tensor.h"
#include "common/training/checkpoint.h"

namespace d2l {

// What a step says of its batch, on the device.
struct StepResult {
  Tensor loss;   // the mean, one number
  Tensor right;  // how many were right; int64
};

// Changes the network; asynchronous.
using TrainStep = std::function<StepResult(const Batch&)>;

// How many of the samples have their largest logit at the label.
Tensor CountRight(const Tensor& logits, const Tensor& labels);

// Forward, backward and an update, on one device. Throws std::invalid_argument
// for an empty batch.
TrainStep MakeTrainStep(nn::Module& net, nn::SGD& sgd);

// The part of the images that the network, under Eval, classifies rightly, over
// one epoch of the batches; nothing if `stop` returned true.
std::optional<double> Accuracy(
    nn::Module& net, DataLoader& batches,
    const std::function<bool()>& stop = [] { return false; });

struct TrainerHooks {
  // Asked before each batch.
  std::function<bool()> stop = [] { return false; };
  // The figures are new: of the last look, some steps behind.
  std::function<void(const TrainingProgress&)> look =
      [](const TrainingProgress&) {};
};

class Trainer {
 public:
  static constexpr int kStepsPerLook = 8;

  // Begins at the batches' position. Takes MakeTrainStep's step.
  Trainer(nn::Module& net, nn::SGD& sgd, DataLoader& batches,
          TrainerHooks hooks = {});
  // The same with another step. devices: those on which it draws random
  // numbers; the batches' if there are none.
  Trainer(nn::Module& net, nn::SGD& sgd, DataLoader& batches,
          TrainerHooks hooks, TrainStep step, std::vector<Device> devices = {});

  // Trains to the end of the epoch: true. False if `stop` returned true: all
  // batches that were begun are done, and the next call goes on. Waits.
  absl::StatusOr<bool> RunEpoch();
  // Call it when RunEpoch has returned true.
  void FinishEpoch(double test_accuracy);

  // Exact when RunEpoch has returned a value.
  const TrainingProgress& progress() const { return progress_; }
  // Goes on with another run's, whose state was restored. Throws
  // std::invalid_argument if there is no such batch, or its samples are not
  // those before it.
  void SetProgress(const TrainingProgress& progress);

 private:
  // A point between two steps.
  struct Mark {
    LoaderPosition next;
    std::int64_t samples;
    Tensor loss_sum;  // these two: of the epoch so far
    Tensor right;
    Tensor check;  // NaN unless all is finite
    TrainingState state;
  };

  Mark MakeMark(const Tensor& loss_sum, const Tensor& right,
                std::int64_t samples);
  // Waits for it; OK if all is finite. `good`: the look before.
  absl::Status Look(const Mark& mark, const Mark& good);
  // Why what follows `good` is not finite.
  absl::Status Explain(const Mark& good);

  nn::Module& net_;
  nn::SGD& sgd_;
  DataLoader& batches_;
  const TrainerHooks hooks_;
  const TrainStep step_;
  const std::vector<Device> devices_;
  TrainingProgress progress_;
};

}  // namespace d2l

#endif  // D2L_COMMON_TRAINING_TRAINER_H_
