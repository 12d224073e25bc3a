// kernel_map_2d: a thread for each element of a matrix.
//
//   bazel run //:exercises -- kernel_map_2d

#include "common/exercise/kernel.h"

namespace d2l {
namespace {

// y = 2 x. The matrices are (rows, columns), row by row in memory. Blocks are
// 16 x 16 threads, and the grid covers the larger of rows and columns in both
// directions, x and y. Which of threadIdx.x and threadIdx.y is the column?
__global__ void Scale(float* y, const float* x, int rows, int columns) {
  // SOLUTION
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && column < columns) {
    y[row * columns + column] = 2 * x[row * columns + column];
  }
  // END
}

D2L_ANSWER("kernel_map_2d", Scale);

}  // namespace
}  // namespace d2l
