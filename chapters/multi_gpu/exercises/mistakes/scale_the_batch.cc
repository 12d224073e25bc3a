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

D2L_MISTAKE("scale_the_batch", unchanged, LearningRate, "no farther");
D2L_MISTAKE("scale_the_batch", without_warm_up, LearningRate,
            "from the first step");
D2L_MISTAKE("scale_the_batch", squared, LearningRate, "are averaged");

}  // namespace
}  // namespace d2l
