#include <cmath>
#include <cstddef>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace all_alike {
std::vector<int> Weights(const std::vector<double>& seconds) {
  return std::vector<int>(seconds.size(), 1);
}
}  // namespace all_alike

namespace by_time {
std::vector<int> Weights(const std::vector<double>& seconds) {
  std::vector<int> weights;
  for (const double s : seconds) {
    weights.push_back(static_cast<int>(std::lround(1e6 * s)));
  }
  return weights;
}
}  // namespace by_time

namespace too_coarse {
std::vector<int> Weights(const std::vector<double>& seconds) {
  double slowest = 0;
  for (const double s : seconds) slowest = std::fmax(slowest, s);
  std::vector<int> weights;
  for (const double s : seconds) {
    weights.push_back(static_cast<int>(slowest / s));
  }
  return weights;
}
}  // namespace too_coarse

namespace whole_samples_a_second {
std::vector<int> Weights(const std::vector<double>& seconds) {
  std::vector<int> weights;
  for (const double s : seconds) weights.push_back(static_cast<int>(1 / s));
  return weights;
}
}  // namespace whole_samples_a_second

namespace samples_a_thousand_seconds {
std::vector<int> Weights(const std::vector<double>& seconds) {
  std::vector<int> weights;
  for (const double s : seconds) {
    weights.push_back(static_cast<int>(std::lround(1e3 / s)));
  }
  return weights;
}
}  // namespace samples_a_thousand_seconds

// Right with two devices.
namespace what_the_others_need {
std::vector<int> Weights(const std::vector<double>& seconds) {
  double all = 0;
  for (const double s : seconds) all += s;
  std::vector<int> weights;
  for (const double s : seconds) {
    weights.push_back(seconds.size() == 1 ? 1
                                          : static_cast<int>(std::lround(
                                                1000 * (all - s) / all)));
  }
  return weights;
}
}  // namespace what_the_others_need

D2L_MISTAKE("unequal_devices", all_alike, Weights, "The shards are equal");
D2L_MISTAKE("unequal_devices", by_time, Weights, "gets the most samples");
D2L_MISTAKE("unequal_devices", too_coarse, Weights, "Weights are whole");
D2L_MISTAKE("unequal_devices", whole_samples_a_second, Weights,
            "A weight of 0");
D2L_MISTAKE("unequal_devices", samples_a_thousand_seconds, Weights,
            "the ratio of the weights counts");
D2L_MISTAKE("unequal_devices", what_the_others_need, Weights,
            "in proportion to 1 / seconds");

}  // namespace
}  // namespace d2l
