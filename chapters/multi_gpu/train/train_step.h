// A step of training on one device, and how many images a network gets right.
//
//   DataLoader batches(data, {/*batch_size=*/256}, device);
//   nn::SGD sgd(nn::Parameters(net), {/*lr=*/0.2});
//   while (const std::optional<Batch> batch = batches.Next()) {
//     StepResult result = TrainStep(net, sgd, *batch);
//     z = result.loss;  // Item(z) waits for it
//   }
//   std::optional<std::int64_t> right = CountRight(net, test_batches);
//
// A step is asynchronous: the host runs ahead of the device as far as the
// program lets it. Thread-safety: none. Errors: a failed operation throws
// AsyncError where its result is read.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_TRAIN_STEP_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_TRAIN_STEP_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "common/data/loader.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/tensor/tensor.h"

namespace d2l {

// What a step says of its batch, on the device.
struct StepResult {
  Tensor loss;   // the mean, one number
  Tensor right;  // how many were right; int64
};

// How many of the samples have their largest logit at the label.
Tensor CountRight(const Tensor& logits, const Tensor& labels);

// Forward, backward and an update.
StepResult TrainStep(nn::Module& net, nn::SGD& sgd, const Batch& batch);

// How many images the network, under Eval, classifies rightly in one epoch of
// the batches; nothing if `stop` returned true.
std::optional<std::int64_t> CountRight(
    nn::Module& net, DataLoader& batches,
    const std::function<bool()>& stop = [] { return false; });

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_TRAIN_STEP_H_
