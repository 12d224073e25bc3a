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

D2L_MISTAKE("unequal_devices", all_alike, Weights, "Equal shards");
D2L_MISTAKE("unequal_devices", by_time, Weights, "gets the most samples");
D2L_MISTAKE("unequal_devices", too_coarse, Weights, "Weights are whole");

}  // namespace
}  // namespace d2l
