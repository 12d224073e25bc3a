#include "common/exercise/kernel.h"

namespace d2l {
namespace {

namespace rows_along_x {
__global__ void Scale(float* y, const float* x, int rows, int columns) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int column = blockIdx.y * blockDim.y + threadIdx.y;
  const int at = row * columns + column;
  if (row < rows && column < columns) y[at] = 2 * x[at];
}
}  // namespace rows_along_x

namespace guards_the_index {
__global__ void Scale(float* y, const float* x, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int at = row * columns + column;
  if (at < rows * columns) y[at] = 2 * x[at];
}
}  // namespace guards_the_index

namespace pitch_is_rows {
__global__ void Scale(float* y, const float* x, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int at = row * rows + column;
  if (row < rows && column < columns) y[at] = 2 * x[at];
}
}  // namespace pitch_is_rows

namespace guards_columns_only {
__global__ void Scale(float* y, const float* x, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int at = row * columns + column;
  if (column < columns) y[at] = 2 * x[at];
}
}  // namespace guards_columns_only

D2L_MISTAKE("kernel_map_2d", rows_along_x, Scale, "runs from thread to thread");
D2L_MISTAKE("kernel_map_2d", guards_the_index, Scale, "right by chance");
D2L_MISTAKE("kernel_map_2d", pitch_is_rows, Scale, "A row begins");
D2L_MISTAKE("kernel_map_2d", guards_columns_only, Scale, "Both coordinates");

}  // namespace
}  // namespace d2l
