#include <algorithm>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace unchanged {
double LearningRate(double lr, int devices, int step) { return lr; }
}  // namespace unchanged

namespace without_warm_up {
double LearningRate(double lr, int devices, int step) { return lr * devices; }
}  // namespace without_warm_up

// As if the devices' gradients were added up, and the rate scaled as well.
namespace squared {
double LearningRate(double lr, int devices, int step) {
  const double reached = std::min(1.0, (step + 1.0) / 30);
  return lr * (1 + (devices * devices - 1) * reached);
}
}  // namespace squared

namespace warms_up_one_device {
double LearningRate(double lr, int devices, int step) {
  return lr * devices * std::min(1.0, (step + 1.0) / 30);
}
}  // namespace warms_up_one_device

namespace integers {
double LearningRate(double lr, int devices, int step) {
  return lr * devices * std::min(30, step) / 30;
}
}  // namespace integers

namespace too_slowly {
double LearningRate(double lr, int devices, int step) {
  return lr * (1 + (devices - 1) * std::min(1.0, (step + 1.0) / 1000));
}
}  // namespace too_slowly

namespace for_one_network {
double LearningRate(double lr, int devices, int step) {
  if (devices == 1) return lr;
  return 0.015 * (1 + (devices - 1) * std::min(1.0, (step + 1.0) / 30));
}
}  // namespace for_one_network

D2L_MISTAKE("scale_the_batch", unchanged, LearningRate, "no farther");
D2L_MISTAKE("scale_the_batch", without_warm_up, LearningRate,
            "from the first step");
D2L_MISTAKE("scale_the_batch", squared, LearningRate, "are averaged");
D2L_MISTAKE("scale_the_batch", warms_up_one_device, LearningRate,
            "On one device lr is right");
D2L_MISTAKE("scale_the_batch", integers, LearningRate,
            "Do you divide integers");
D2L_MISTAKE("scale_the_batch", too_slowly, LearningRate, "some tens of steps");
D2L_MISTAKE("scale_the_batch", for_one_network, LearningRate,
            "does not depend on lr");

}  // namespace
}  // namespace d2l
