// unequal_devices: give a slow device less.
//
//   bazel run //:exercises -- unequal_devices

#include <cmath>
#include <vector>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// Weights for --split: device i needs seconds[i] for a sample, and a step takes
// as long as the device that is done last. Weights are whole numbers up to
// 1,000,000; a device gets samples in proportion to its weight.
std::vector<int> Weights(const std::vector<double>& seconds) {
  // SOLUTION
  double fastest = seconds[0];
  for (const double s : seconds) fastest = std::fmin(fastest, s);
  std::vector<int> weights;
  for (const double s : seconds) {
    weights.push_back(static_cast<int>(std::lround(1000 * fastest / s)));
  }
  return weights;
  // END
}

D2L_ANSWER("unequal_devices", Weights);

}  // namespace
}  // namespace d2l
