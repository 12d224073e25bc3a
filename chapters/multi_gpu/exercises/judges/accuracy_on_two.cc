// Judges accuracy_on_two: on batches of several sizes, against a count, sample
// by sample.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using Accuracy = double(DataParallel& net,
                        const std::vector<std::pair<Tensor, Tensor>>& batches);

constexpr std::int64_t kClasses = 3;

// The outputs are the inputs with the other sign. In training, dropout removes
// nearly all inputs: then the network guesses.
DataParallel MakeNet() {
  const Device device = Devices()[0].device;
  nn::Sequential layers(nn::Dropout(0.9),
                        nn::Linear(kClasses, kClasses, /*bias=*/false));
  nn::To(layers, device);
  std::vector<float> weight(kClasses * kClasses, 0.f);
  for (int i = 0; i < kClasses; ++i) weight[i * (kClasses + 1)] = -1;
  CopyTo(FromVector(weight, {kClasses, kClasses}, device),
         nn::Parameters(layers)[0]);
  const int devices = std::min<int>(2, static_cast<int>(Devices().size()));
  return DataParallel(std::move(layers), devices == 2 ? std::vector<int>{0, 1}
                                                      : std::vector<int>{0});
}

void JudgeAccuracy(Judging& judging, Accuracy* answer) {
  const Device device = Devices()[0].device;
  for (const std::vector<std::int64_t>& sizes :
       std::vector<std::vector<std::int64_t>>{
           {16, 16, 3}, {64, 1}, {1}, {7, 5}, {}}) {
    const std::string input =
        Say("batches of %s samples", absl::StrJoin(sizes, ", "));
    std::vector<std::pair<Tensor, Tensor>> batches;
    double right = 0, samples = 0, means = 0, without_last = 0;
    double by_inputs = 0;  // right by the inputs, not by the net's outputs
    for (std::size_t b = 0; b < sizes.size(); ++b) {
      const auto rows = static_cast<std::size_t>(sizes[b]);
      const std::vector<float> x =
          RandomNumbers(rows * kClasses, static_cast<unsigned>(b + 1));
      std::vector<std::int64_t> labels;
      double right_here = 0;
      for (std::size_t i = 0; i < rows; ++i) {
        const auto begin =
            x.begin() + static_cast<std::ptrdiff_t>(i * kClasses);
        const std::int64_t best =
            std::min_element(begin, begin + kClasses) - begin;
        // Every fifth label is wrong, but none in a last batch behind others.
        const bool wrong = i % 5 == 0 && (b == 0 || b + 1 < sizes.size());
        labels.push_back(wrong ? (best + 1) % kClasses : best);
        const std::int64_t largest =
            std::max_element(begin, begin + kClasses) - begin;
        by_inputs += labels.back() == largest ? 1 : 0;
        right_here += wrong ? 0 : 1;
      }
      if (b > 0) without_last = right / samples;
      right += right_here;
      samples += static_cast<double>(rows);
      means += right_here / static_cast<double>(rows);
      batches.emplace_back(FromVector(x, {sizes[b], kClasses}, device),
                           FromVector(labels, {sizes[b]}, device));
    }
    const double expected = samples == 0 ? 0 : right / samples;
    DataParallel net = MakeNet();
    const double got = answer(net, batches);
    const auto is = [&](double value) {  // false for NaN
      return std::abs(got - value) <= 1e-6;
    };
    if (!is(expected)) {
      const auto batch_count = static_cast<double>(sizes.size());
      std::string look =
          "Is the net still in training mode? Then dropout drops other inputs "
          "each time.";
      if (samples == 0) {
        look =
            "Without samples, 0 / 0 is not a number. Return an accuracy of 0 "
            "then.";
      } else if (is(by_inputs / samples)) {
        look = "This is computed from the inputs alone: let the net predict.";
      } else if (is(0)) {
        look =
            "The quotient of two integers is an integer, here 0. Divide "
            "doubles.";
      } else if (is(means / batch_count)) {
        look =
            "A batch of 3 samples counts as much as a batch of 16: count "
            "samples, not batches.";
      } else if (is(right / (batch_count * static_cast<double>(sizes[0])))) {
        look =
            "This divides as if each batch were as large as the first: the "
            "last one may be smaller.";
      } else if (is(without_last)) {
        look = "The last batch counts, too, however small it is.";
      }
      judging.Wrong({input, absl::StrFormat("%.4f", got),
                     absl::StrFormat("%.4f", expected), look});
    }
    // Is it trained again? Then most of the ones are dropped out.
    const std::vector<float> ones =
        ToVector<float>(net(Ones({100, kClasses}, device)));
    if (std::count(ones.begin(), ones.end(), -1.f) > 0) {
      judging.Wrong({input, "dropout drops nothing afterwards",
                     "what it does in training",
                     "The net is not trained any more: each epoch after this "
                     "one goes without dropout. Train(true)."});
    }
  }
}

D2L_JUDGE("accuracy_on_two", JudgeAccuracy);

}  // namespace
}  // namespace d2l
