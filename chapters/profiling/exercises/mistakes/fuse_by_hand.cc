#include <vector>

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

namespace counts_from_1 {
void Fused(const float* x, const float* bias, const float* residual,
           float scale, float* y, int rows, int columns) {
  for (int i = 0; i < rows * columns; ++i) {
    y[i + 1] = (x[i] + bias[i % columns]) * scale + residual[i];
  }
}
}  // namespace counts_from_1

namespace bias_of_the_row {
void Fused(const float* x, const float* bias, const float* residual,
           float scale, float* y, int rows, int columns) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const int at = i * columns + j;
      y[at] = (x[at] + bias[i % columns]) * scale + residual[at];
    }
  }
}
}  // namespace bias_of_the_row

namespace always_the_same_scale {
void Fused(const float* x, const float* bias, const float* residual, float,
           float* y, int rows, int columns) {
  for (int i = 0; i < rows * columns; ++i) {
    y[i] = (x[i] + bias[i % columns]) * 1.7f + residual[i];
  }
}
}  // namespace always_the_same_scale

namespace memory_of_its_own {
void Fused(const float* x, const float* bias, const float* residual,
           float scale, float* y, int rows, int columns) {
  std::vector<float> sums(x, x + rows * columns);
  for (int i = 0; i < rows * columns; ++i) sums[i] += bias[i % columns];
  for (int i = 0; i < rows * columns; ++i) {
    y[i] = sums[i] * scale + residual[i];
  }
}
}  // namespace memory_of_its_own

D2L_MISTAKE("fuse_by_hand", keeps_it_in_y, Fused, "has overwritten the");
D2L_MISTAKE("fuse_by_hand", scales_the_residual, Fused,
            "is added last, unscaled");
D2L_MISTAKE("fuse_by_hand", reads_x_again, Fused, "and once only");
D2L_MISTAKE("fuse_by_hand", counts_from_1, Fused, "a write beside the array");
D2L_MISTAKE("fuse_by_hand", bias_of_the_row, Fused, "bias[j]");
D2L_MISTAKE("fuse_by_hand", always_the_same_scale, Fused,
            "With another scale,");
D2L_MISTAKE("fuse_by_hand", memory_of_its_own, Fused, "1 allocations");

}  // namespace
}  // namespace d2l
