// A step of training on one device, and the number of images classified right.
//
//   DataLoader batches(data, {/*batch_size=*/256}, device);
//   nn::SGD sgd(nn::Parameters(net), {/*lr=*/0.2});
//   while (const std::optional<Batch> batch = batches.Next()) {
//     StepResult result = TrainStep(net, sgd, *batch);
//     z = result.loss;  // Item(z) waits for it
//   }
//   std::optional<std::int64_t> right = CountRight(net, test_batches);
//
// A step is asynchronous: the program decides how far the host runs ahead of
// the device. Thread-safety: none. Errors: a failed operation throws AsyncError
// where its result is read.

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

// The results of a step for its batch, on the device.
struct StepResult {
  Tensor loss;   // the mean, one number
  Tensor right;  // how many were right; int64
};

// The number of samples whose largest logit is at the label.
Tensor CountRight(const Tensor& logits, const Tensor& labels);

// Runs forward, backward and an update.
StepResult TrainStep(nn::Module& net, nn::SGD& sgd, const Batch& batch);

// The number of images in one epoch of the batches that the network, in
// evaluation mode, classifies right; nothing if `stop` returned true.
std::optional<std::int64_t> CountRight(
    nn::Module& net, DataLoader& batches,
    const std::function<bool()>& stop = [] { return false; });

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_TRAIN_STEP_H_
