#include "chapters/multi_gpu/train/train_step.h"

#include <cstddef>
#include <cstdint>
#include <deque>

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
  constexpr std::size_t kInFlight = 8;  // batches that the host is ahead
  const bool training = net.training();
  net.Eval();
  const absl::Cleanup as_before = [&] { net.Train(training); };
  batches.SetPosition({0, 0});
  Tensor right = Zeros({}, batches.device(), DType::kInt64);
  std::deque<Tensor> in_flight;
  while (std::optional<Batch> batch = batches.Next()) {
    if (stop()) return std::nullopt;
    right = right + CountRight(net(batch->images), batch->labels);
    in_flight.push_back(right);
    if (in_flight.size() > kInFlight) {
      WaitToRead(in_flight.front());
      in_flight.pop_front();
    }
  }
  return Item<std::int64_t>(right);
}

}  // namespace d2l
