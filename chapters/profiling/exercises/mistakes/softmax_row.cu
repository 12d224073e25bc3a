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

namespace subtracts_the_first {
__global__ void SoftmaxRow(float* y, const float* x, int columns) {
  const int lane = threadIdx.x;
  const float* const from = x + blockIdx.x * columns;
  float* const to = y + blockIdx.x * columns;
  const float first = from[0];
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum += expf(from[i] - first);
  for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = lane; i < columns; i += 32) {
    to[i] = expf(from[i] - first) / sum;
  }
}
}  // namespace subtracts_the_first

namespace begins_with_0 {
__global__ void SoftmaxRow(float* y, const float* x, int columns) {
  const int lane = threadIdx.x;
  const float* const from = x + blockIdx.x * columns;
  float* const to = y + blockIdx.x * columns;
  float largest = 0;
  for (int i = lane; i < columns; i += 32) largest = fmaxf(largest, from[i]);
  for (int m = 16; m > 0; m /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, m));
  }
  float sum = 0;
  for (int i = lane; i < columns; i += 32) sum += expf(from[i] - largest);
  for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(0xffffffff, sum, m);
  for (int i = lane; i < columns; i += 32) {
    to[i] = expf(from[i] - largest) / sum;
  }
}
}  // namespace begins_with_0

namespace warp_without_order {
__global__ void SoftmaxRow(float* y, const float* x, int columns) {
  __shared__ float largest[32], sum[32];
  const int lane = threadIdx.x;
  const float* const from = x + blockIdx.x * columns;
  float* const to = y + blockIdx.x * columns;
  largest[lane] = -INFINITY;
  for (int i = lane; i < columns; i += 32) {
    largest[lane] = fmaxf(largest[lane], from[i]);
  }
  for (int half = 16; half > 0; half /= 2) {
    if (lane < half) largest[lane] = fmaxf(largest[lane], largest[lane + half]);
  }
  __syncwarp();
  sum[lane] = 0;
  for (int i = lane; i < columns; i += 32) {
    sum[lane] += expf(from[i] - largest[0]);
  }
  for (int half = 16; half > 0; half /= 2) {
    __syncwarp();
    if (lane < half) sum[lane] += sum[lane + half];
  }
  __syncwarp();
  for (int i = lane; i < columns; i += 32) {
    to[i] = expf(from[i] - largest[0]) / sum[0];
  }
}
}  // namespace warp_without_order

namespace each_the_whole_row {
__global__ void SoftmaxRow(float* y, const float* x, int columns) {
  const float* const from = x + blockIdx.x * columns;
  float largest = -INFINITY, sum = 0;
  for (int i = 0; i < columns; ++i) largest = fmaxf(largest, from[i]);
  for (int i = 0; i < columns; ++i) sum += expf(from[i] - largest);
  for (int i = threadIdx.x; i < columns; i += 32) {
    y[blockIdx.x * columns + i] = expf(from[i] - largest) / sum;
  }
}
}  // namespace each_the_whole_row

D2L_MISTAKE("softmax_row", no_maximum, SoftmaxRow, "overflows");
D2L_MISTAKE("softmax_row", sum_in_one_lane, SoftmaxRow, "Only thread 0");
D2L_MISTAKE("softmax_row", own_sum_only, SoftmaxRow, "of its own numbers");
D2L_MISTAKE("softmax_row", idle_lanes_return, SoftmaxRow, "others of its warp");
D2L_MISTAKE("softmax_row", chunks, SoftmaxRow, "each load of a warp");
D2L_MISTAKE("softmax_row", subtracts_the_first, SoftmaxRow,
            "not any one of its numbers");
D2L_MISTAKE("softmax_row", warp_without_order, SoftmaxRow,
            "the same word of shared memory");
D2L_MISTAKE("softmax_row", begins_with_0, SoftmaxRow, "may all be negative");
D2L_MISTAKE("softmax_row", each_the_whole_row, SoftmaxRow,
            "goes through the whole row");

}  // namespace
}  // namespace d2l
