// Two kernels that add up a matrix. They are compiled for the check of kernels,
// on every machine; nvcc takes them as they are.

#include "chapters/profiling/kernel_requests.h"

namespace d2l::profiling {

// %% d2l/kernel-requests
// A thread adds up a column: its neighbour reads the next element.
__global__ void SumColumns(float* sums, const float* x, int n) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= n) return;
  float sum = 0;
  for (int row = 0; row < n; ++row) sum += x[row * n + column];
  sums[column] = sum;
}

// A thread adds up a row: its neighbour reads n elements away.
__global__ void SumRows(float* sums, const float* x, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int column = 0; column < n; ++column) sum += x[row * n + column];
  sums[row] = sum;
}
// %%

}  // namespace d2l::profiling
