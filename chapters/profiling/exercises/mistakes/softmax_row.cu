#include "common/exercise/kernel.h"

namespace d2l {
namespace {

namespace no_maximum {
__global__ void SoftmaxRow(float* y, const float* x, int columns) {
  const int lane = threadIdx.x;
  const float* const from = x + blockIdx.x * columns;
  float* const to = y + blockIdx.x * columns;
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum += expf(from[i]);
  for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = lane; i < columns; i += 32) to[i] = expf(from[i]) / sum;
}
}  // namespace no_maximum

namespace sum_in_one_lane {
__global__ void SoftmaxRow(float* y, const float* x, int columns) {
  const int lane = threadIdx.x;
  const float* const from = x + blockIdx.x * columns;
  float* const to = y + blockIdx.x * columns;
  float largest = -INFINITY;
  for (int i = lane; i < columns; i += 32) largest = fmaxf(largest, from[i]);
  for (int m = 16; m > 0; m /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, m));
  }
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum += expf(from[i] - largest);
  for (int m = 16; m > 0; m /= 2) {
    sum += __shfl_down_sync(0xffffffff, sum, m);
  }
  for (int i = lane; i < columns; i += 32)
    to[i] = expf(from[i] - largest) / sum;
}
}  // namespace sum_in_one_lane

namespace own_sum_only {
__global__ void SoftmaxRow(float* y, const float* x, int columns) {
  const int lane = threadIdx.x;
  const float* const from = x + blockIdx.x * columns;
  float* const to = y + blockIdx.x * columns;
  float largest = -INFINITY;
  for (int i = lane; i < columns; i += 32) largest = fmaxf(largest, from[i]);
  for (int m = 16; m > 0; m /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, m));
  }
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum += expf(from[i] - largest);

  for (int i = lane; i < columns; i += 32)
    to[i] = expf(from[i] - largest) / sum;
}
}  // namespace own_sum_only

namespace idle_lanes_return {
__global__ void SoftmaxRow(float* y, const float* x, int columns) {
  const int lane = threadIdx.x;
  const float* const from = x + blockIdx.x * columns;
  float* const to = y + blockIdx.x * columns;
  if (lane >= columns) return;
  float largest = -INFINITY;
  for (int i = lane; i < columns; i += 32) largest = fmaxf(largest, from[i]);
  for (int m = 16; m > 0; m /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, m));
  }
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum += expf(from[i] - largest);
  for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = lane; i < columns; i += 32)
    to[i] = expf(from[i] - largest) / sum;
}
}  // namespace idle_lanes_return

namespace chunks {
__global__ void SoftmaxRow(float* y, const float* x, int columns) {
  const int lane = threadIdx.x;
  const float* const from = x + blockIdx.x * columns;
  float* const to = y + blockIdx.x * columns;
  const int chunk = (columns + 31) / 32;
  float largest = -INFINITY;
  for (int i = lane * chunk; i < min(lane * chunk + chunk, columns); ++i)
    largest = fmaxf(largest, from[i]);
  for (int m = 16; m > 0; m /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, m));
  }
  float sum = 0;
  for (int i = lane * chunk; i < min(lane * chunk + chunk, columns); ++i)
    sum += expf(from[i] - largest);
  for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = lane * chunk; i < min(lane * chunk + chunk, columns); ++i)
    to[i] = expf(from[i] - largest) / sum;
}
}  // namespace chunks

D2L_MISTAKE("softmax_row", no_maximum, SoftmaxRow, "overflows");
D2L_MISTAKE("softmax_row", sum_in_one_lane, SoftmaxRow, "Only thread 0");
D2L_MISTAKE("softmax_row", own_sum_only, SoftmaxRow, "of its own numbers");
D2L_MISTAKE("softmax_row", idle_lanes_return, SoftmaxRow, "others of its warp");
D2L_MISTAKE("softmax_row", chunks, SoftmaxRow, "each load of a warp");

}  // namespace
}  // namespace d2l
