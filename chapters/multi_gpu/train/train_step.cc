#include "chapters/multi_gpu/train/train_step.h"

#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "common/autograd/tape.h"
#include "common/nn/layers.h"
#include "common/ops/ops.h"

namespace d2l {

Tensor CountRight(const Tensor& logits, const Tensor& labels) {
  return Sum(ArgMax(logits, 1) == labels);
}

StepResult TrainStep(nn::Module& net, nn::SGD& sgd, const Batch& batch) {
  GradientTape tape(nn::Parameters(net));
  const Tensor logits = net(batch.images);
  const Tensor loss = nn::CrossEntropyLoss(logits, batch.labels);
  sgd.Step(tape.Backward(loss));
  return {loss, CountRight(logits, batch.labels)};
}

std::optional<std::int64_t> CountRight(nn::Module& net, DataLoader& batches,
                                       const std::function<bool()>& stop) {
  const bool training = net.training();
  net.Eval();
  const absl::Cleanup as_before = [&] { net.Train(training); };
  batches.SetPosition({0, 0});
  Tensor right = Zeros({}, batches.device(), DType::kInt64);
  while (const std::optional<Batch> batch = batches.Next()) {
    if (stop()) return std::nullopt;
    const Tensor before = right;
    right = right + CountRight(net(batch->images), batch->labels);
    WaitToRead(before);  // the host is one batch ahead
  }
  return Item<std::int64_t>(right);
}

}  // namespace d2l
