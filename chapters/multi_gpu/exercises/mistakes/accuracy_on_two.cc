#include <utility>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using Batches = std::vector<std::pair<Tensor, Tensor>>;

double Right(DataParallel& net, const Tensor& x, const Tensor& labels) {
  return Item(Sum(ArgMax(net(x), {1}) == labels));
}

namespace mean_of_means {
double Accuracy(DataParallel& net, const Batches& batches) {
  net.Train(false);
  double sum = 0;
  for (const auto& [x, labels] : batches) {
    sum += Right(net, x, labels) / static_cast<double>(labels.numel());
  }
  net.Train(true);
  return batches.empty() ? 0 : sum / static_cast<double>(batches.size());
}
}  // namespace mean_of_means

namespace while_training {
double Accuracy(DataParallel& net, const Batches& batches) {
  double right = 0, samples = 0;
  for (const auto& [x, labels] : batches) {
    right += Right(net, x, labels);
    samples += static_cast<double>(labels.numel());
  }
  return samples == 0 ? 0 : right / samples;
}
}  // namespace while_training

namespace stays_in_evaluation {
double Accuracy(DataParallel& net, const Batches& batches) {
  net.Train(false);
  double right = 0, samples = 0;
  for (const auto& [x, labels] : batches) {
    right += Right(net, x, labels);
    samples += static_cast<double>(labels.numel());
  }
  return samples == 0 ? 0 : right / samples;
}
}  // namespace stays_in_evaluation

D2L_MISTAKE("accuracy_on_two", mean_of_means, Accuracy, "as much as");
D2L_MISTAKE("accuracy_on_two", while_training, Accuracy, "drops out");
D2L_MISTAKE("accuracy_on_two", stays_in_evaluation, Accuracy,
            "is not trained any more");

}  // namespace
}  // namespace d2l
