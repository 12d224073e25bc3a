#include "common/exercise/exercise.h"

namespace d2l {
namespace {

namespace keeps_it_in_y {
void Fused(const float* x, const float* bias, const float* residual,
           float scale, float* y, int rows, int columns) {
  for (int i = 0; i < rows * columns; ++i) y[i] = x[i] + bias[i % columns];
  for (int i = 0; i < rows * columns; ++i) {
    y[i] = y[i] * scale + residual[i];
  }
}
}  // namespace keeps_it_in_y

namespace scales_the_residual {
void Fused(const float* x, const float* bias, const float* residual,
           float scale, float* y, int rows, int columns) {
  for (int i = 0; i < rows * columns; ++i) {
    y[i] = (x[i] + bias[i % columns] + residual[i]) * scale;
  }
}
}  // namespace scales_the_residual

namespace reads_x_again {
void Fused(const float* x, const float* bias, const float* residual,
           float scale, float* y, int rows, int columns) {
  for (int i = 0; i < rows * columns; ++i) {
    y[i] = residual[i];
    y[i] += (x[i] + bias[i % columns]) * scale;
  }
}
}  // namespace reads_x_again

D2L_MISTAKE("fuse_by_hand", keeps_it_in_y, Fused, "has overwritten the");
D2L_MISTAKE("fuse_by_hand", scales_the_residual, Fused,
            "is added last, unscaled");
D2L_MISTAKE("fuse_by_hand", reads_x_again, Fused, "and once only");

}  // namespace
}  // namespace d2l
