// worth_compiling: up to which width does compiling pay?
//
//   bazel run //:exercises -- worth_compiling

#include <algorithm>
#include <cmath>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// A network of `layers` products of one row with a square matrix of `width`.
// Compiling saves `saved` seconds a call, whatever the width, and leaves the
// arithmetic as it is: `rate` floating-point operations a second. Returns the
// largest width for which an eager call takes at least 1.1 times as long as a
// compiled one; 0 if there is none.
int LargestWidth(int layers, double saved, double rate) {
  // SOLUTION
  // Eager: saved + arithmetic >= 1.1 arithmetic. A product of a row with a
  // matrix multiplies and adds width * width times.
  const double arithmetic = saved / 0.1;
  return static_cast<int>(std::sqrt(arithmetic * rate / (2.0 * layers)));
  // END
}

D2L_ANSWER("worth_compiling", LargestWidth);

}  // namespace
}  // namespace d2l
