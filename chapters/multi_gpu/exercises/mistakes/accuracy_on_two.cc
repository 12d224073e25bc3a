#include <cstdint>
#include <utility>
#include <vector>

#include "common/exercise/exercise.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
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

namespace not_a_number {
double Accuracy(DataParallel& net, const Batches& batches) {
  net.Train(false);
  double right = 0, samples = 0;
  for (const auto& [x, labels] : batches) {
    right += Right(net, x, labels);
    samples += static_cast<double>(labels.numel());
  }
  net.Train(true);
  return right / samples;
}
}  // namespace not_a_number

namespace full_batches_only {
double Accuracy(DataParallel& net, const Batches& batches) {
  net.Train(false);
  double right = 0, samples = 0;
  for (const auto& [x, labels] : batches) {
    if (labels.numel() < batches[0].second.numel()) continue;
    right += Right(net, x, labels);
    samples += static_cast<double>(labels.numel());
  }
  net.Train(true);
  return samples == 0 ? 0 : right / samples;
}
}  // namespace full_batches_only

namespace as_if_all_were_full {
double Accuracy(DataParallel& net, const Batches& batches) {
  net.Train(false);
  double right = 0;
  for (const auto& [x, labels] : batches) right += Right(net, x, labels);
  net.Train(true);
  return batches.empty()
             ? 0
             : right / static_cast<double>(batches.size() *
                                           batches[0].second.numel());
}
}  // namespace as_if_all_were_full

namespace whole_numbers {
double Accuracy(DataParallel& net, const Batches& batches) {
  net.Train(false);
  std::int64_t right = 0, samples = 0;
  for (const auto& [x, labels] : batches) {
    right += static_cast<std::int64_t>(Right(net, x, labels));
    samples += labels.numel();
  }
  net.Train(true);
  return samples == 0 ? 0 : static_cast<double>(right / samples);
}
}  // namespace whole_numbers

namespace without_the_net {
double Accuracy(DataParallel& net,
                const std::vector<std::pair<Tensor, Tensor>>& batches) {
  double right = 0, samples = 0;
  for (const auto& [x, labels] : batches) {
    right += Item(Sum(ArgMax(x, {1}) == labels));
    samples += static_cast<double>(labels.numel());
  }
  return samples == 0 ? 0 : right / samples;
}
}  // namespace without_the_net

D2L_MISTAKE("accuracy_on_two", mean_of_means, Accuracy, "as much as");
D2L_MISTAKE("accuracy_on_two", while_training, Accuracy,
            "dropout drops other inputs");
D2L_MISTAKE("accuracy_on_two", stays_in_evaluation, Accuracy,
            "is not trained any more");
D2L_MISTAKE("accuracy_on_two", not_a_number, Accuracy, "0 / 0");
D2L_MISTAKE("accuracy_on_two", full_batches_only, Accuracy,
            "The last batch counts, too");
D2L_MISTAKE("accuracy_on_two", as_if_all_were_full, Accuracy,
            "as large as the first");
D2L_MISTAKE("accuracy_on_two", whole_numbers, Accuracy,
            "The quotient of two integers");
D2L_MISTAKE("accuracy_on_two", without_the_net, Accuracy,
            "let the net predict");

}  // namespace
}  // namespace d2l
