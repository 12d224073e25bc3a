#include <algorithm>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace nothing_overlaps {
double Predict(double t1, double t2, double t3, int n, int k) {
  return n * (t1 + t2) + (n + k - 1) / k * t3;
}
}  // namespace nothing_overlaps

namespace device_is_slower {
double Predict(double t1, double t2, double t3, int n, int k) {
  return (n + k - 1) / k * (t1 + t3) + n * t2;
}
}  // namespace device_is_slower

namespace waits_once {
double Predict(double t1, double t2, double t3, int n, int k) {
  if (n == 0) return 0;
  if (k == 1) return n * (t1 + t2 + t3);
  return std::min(t1, t2) + n * std::max(t1, t2) + t3;
}
}  // namespace waits_once

namespace overlaps_with_every_wait {
double Predict(double t1, double t2, double t3, int n, int k) {
  return n * std::max(t1, t2) + t3 * ((n + k - 1) / k);
}
}  // namespace overlaps_with_every_wait

namespace whole_blocks_only {
double Predict(double t1, double t2, double t3, int n, int k) {
  return n / k * (std::min(t1, t2) + k * std::max(t1, t2) + t3);
}
}  // namespace whole_blocks_only

namespace waits_for_nothing {
double Predict(double t1, double t2, double t3, int n, int k) {
  const int blocks = std::max(1, (n + k - 1) / k);
  return blocks * (std::min(t1, t2) + t3) + n * std::max(t1, t2);
}
}  // namespace waits_for_nothing

D2L_MISTAKE("which_formula", nothing_overlaps, Predict,
            "while the device still computes");
D2L_MISTAKE("which_formula", device_is_slower, Predict,
            "the device waits for the front end");
D2L_MISTAKE("which_formula", waits_once, Predict, "count the waits");
D2L_MISTAKE("which_formula", overlaps_with_every_wait, Predict,
            "t1, t2 and t3 come one after the other");
D2L_MISTAKE("which_formula", whole_blocks_only, Predict,
            "The last block may have fewer than k");
D2L_MISTAKE("which_formula", waits_for_nothing, Predict, "Nothing is enqueued");

}  // namespace
}  // namespace d2l
