// which_formula: predict what a loop of operations costs, before it runs.
//
//   bazel run //:exercises -- which_formula

#include <algorithm>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// To enqueue one operation takes the front end t1 seconds, to do it takes the
// device t2, and to wait for the device t3, once all is done. The front end
// enqueues n operations and waits after every k of them, and at the end.
// Returns how long that takes, to within a factor of 1.5.
double Predict(double t1, double t2, double t3, int n, int k) {
  // SOLUTION
  // In a block of k, enqueueing overlaps with work for all but one, so that the
  // slower side sets the pace.
  const auto block = [&](int operations) {
    return std::min(t1, t2) + operations * std::max(t1, t2) + t3;
  };
  return n / k * block(k) + (n % k > 0 ? block(n % k) : 0);
  // END
}

D2L_ANSWER("which_formula", Predict);

}  // namespace
}  // namespace d2l
