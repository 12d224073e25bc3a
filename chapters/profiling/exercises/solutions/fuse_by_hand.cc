// fuse_by_hand: three passes over memory in one.
//
//   bazel run //:exercises -- fuse_by_hand

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// y = (x + bias) * scale + residual, in three passes:
//   y = x + bias       bias has `columns` numbers, the others rows * columns
//   y = y * scale
//   y = y + residual
// In one pass, and without memory of its own, so that y may be the same array
// as x, or as residual.
void Fused(const float* x, const float* bias, const float* residual,
           float scale, float* y, int rows, int columns) {
  // SOLUTION
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const int at = i * columns + j;
      y[at] = (x[at] + bias[j]) * scale + residual[at];
    }
  }
  // END
}

D2L_ANSWER("fuse_by_hand", Fused);

}  // namespace
}  // namespace d2l
