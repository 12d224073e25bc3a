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

D2L_MISTAKE("which_formula", nothing_overlaps, Predict, "overlaps with the");
D2L_MISTAKE("which_formula", device_is_slower, Predict,
            "the device waits for the front end");
D2L_MISTAKE("which_formula", waits_once, Predict, "count the waits");

}  // namespace
}  // namespace d2l
