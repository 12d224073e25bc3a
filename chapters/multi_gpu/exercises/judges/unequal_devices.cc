// Judges unequal_devices by the time of a step with the shards that the weights
// make.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/parallel/data_parallel/split_batch.h"

namespace d2l {
namespace {

using Weights = std::vector<int>(const std::vector<double>& seconds);

constexpr std::int64_t kSamples = 2560;

double StepSeconds(const std::vector<double>& seconds,
                   const std::vector<std::int64_t>& shards) {
  double last = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    last = std::max(last, seconds[i] * static_cast<double>(shards[i]));
  }
  return last;
}

std::string LookAt(const std::vector<double>& seconds,
                   const std::vector<int>& weights) {
  const auto slowest = std::max_element(seconds.begin(), seconds.end());
  const int most = *std::max_element(weights.begin(), weights.end());
  if (std::count(weights.begin(), weights.end(), most) ==
      static_cast<std::ptrdiff_t>(weights.size())) {
    return "The shards are equal, so all devices wait for the slow one.";
  }
  if (weights[static_cast<std::size_t>(slowest - seconds.begin())] == most) {
    return "The slowest device gets the most samples. A weight is a speed, "
           "samples a second.";
  }
  // Rounding a weight of 20 changes it by 2.5 % at most.
  if (*std::min_element(weights.begin(), weights.end()) >= 20) {
    return "Weights are in proportion to 1 / seconds: the weight times the "
           "seconds is the same for each device.";
  }
  return "Weights are whole numbers: 1 and 1.9 both become 1. Multiply them "
         "before you round.";
}

void JudgeWeights(Judging& judging, Weights* answer) {
  std::vector<std::vector<double>> machines = {{1e-4, 2e-4},
                                               {3e-4, 3e-4, 3e-4},
                                               {1.9e-5, 1e-5, 1.2e-5, 2.1e-5},
                                               {7e-3, 2e-3, 3.1e-3, 2.2e-3},
                                               {1.5, 4.4},
                                               {5e-6}};
  for (int i = 0; i < 10; ++i) {
    machines.emplace_back(static_cast<std::size_t>(Drawn(2, 7)));
    const double fastest = std::pow(10, Drawn(-6, 0));
    for (double& s : machines.back()) s = fastest * Drawn(1, 4);
  }
  for (const std::vector<double>& seconds : machines) {
    const std::string input =
        Say("a sample takes %s",
            absl::StrJoin(seconds, ", ", [](std::string* out, double s) {
              *out += FormatDuration(s);
            }));
    const std::vector<int> weights = answer(seconds);
    const bool all_there = weights.size() == seconds.size();
    const bool zero =
        all_there && *std::min_element(weights.begin(), weights.end()) < 1;
    if (!all_there || zero ||
        *std::max_element(weights.begin(), weights.end()) > 1'000'000) {
      judging.Wrong({input, Say("the weights %s", absl::StrJoin(weights, ":")),
                     Say("%d weights, from 1 to 1,000,000", seconds.size()),
                     !all_there ? "Return one weight for each device."
                     : zero     ? "A weight of 0 leaves its device idle. If a "
                                  "sample takes more than a second, 1 / s is less "
                                  "than 1: multiply before you round."
                            : "Only the ratio of the weights counts: give the "
                              "fastest device 1000, say, whatever its speed."});
    }
    double speed = 0;
    for (const double s : seconds) speed += 1 / s;
    const double got = StepSeconds(seconds, ShardSizes(kSamples, weights));
    const double best = static_cast<double>(kSamples) / speed;
    if (got <= 1.05 * best) continue;
    judging.Wrong({input,
                   Say("%s for a step, with the weights %s",
                       FormatDuration(got), absl::StrJoin(weights, ":")),
                   Say("%s, within 5 %%", FormatDuration(best)),
                   LookAt(seconds, weights)});
  }
}

D2L_JUDGE("unequal_devices", JudgeWeights);

}  // namespace
}  // namespace d2l
