#include "common/exercise/kernel.h"

namespace d2l {
namespace {

namespace one_barrier {
__global__ void BlockSum(float* sums, const float* x, int n) {
  __shared__ float sum[256];
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  sum[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) sum[t] += sum[t + half];
  }
  if (t == 0) sums[blockIdx.x] = sum[0];
}
}  // namespace one_barrier

namespace barrier_in_the_branch {
__global__ void BlockSum(float* sums, const float* x, int n) {
  __shared__ float sum[256];
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  sum[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) {
      sum[t] += sum[t + half];
      __syncthreads();
    }
  }
  if (t == 0) sums[blockIdx.x] = sum[0];
}
}  // namespace barrier_in_the_branch

namespace tail_unwritten {
__global__ void BlockSum(float* sums, const float* x, int n) {
  __shared__ float sum[256];
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  if (i < n) sum[t] = x[i];
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sum[t] += sum[t + half];
  }
  if (t == 0) sums[blockIdx.x] = sum[0];
}
}  // namespace tail_unwritten

namespace all_store {
__global__ void BlockSum(float* sums, const float* x, int n) {
  __shared__ float sum[256];
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  sum[t] = i < n ? x[i] : 0;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sum[t] += sum[t + half];
  }
  __syncthreads();
  sums[blockIdx.x] = sum[0];
}
}  // namespace all_store

namespace every_second_thread {
__global__ void BlockSum(float* sums, const float* x, int n) {
  __shared__ float sum[256];
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  sum[t] = i < n ? x[i] : 0;
  for (int step = 1; step < static_cast<int>(blockDim.x); step *= 2) {
    __syncthreads();
    const int at = 2 * step * t;
    if (at + step < static_cast<int>(blockDim.x)) sum[at] += sum[at + step];
  }
  if (t == 0) sums[blockIdx.x] = sum[0];
}
}  // namespace every_second_thread

namespace one_thread {
__global__ void BlockSum(float* sums, const float* x, int n) {
  if (threadIdx.x != 0) return;
  const int begin = blockIdx.x * blockDim.x;
  float sum = 0;
  for (int i = begin; i < n && i < begin + 256; ++i) sum += x[i];
  sums[blockIdx.x] = sum;
}
}  // namespace one_thread

// Without __shared__, one array for all blocks.
namespace static_memory {
__global__ void BlockSum(float* sums, const float* x, int n) {
  static float sum[256];
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  sum[t] = i < n ? x[i] : 0;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sum[t] += sum[t + half];
  }
  if (t == 0) sums[blockIdx.x] = sum[0];
}
}  // namespace static_memory

D2L_MISTAKE("block_sum", one_barrier, BlockSum,
            "the same word of shared memory");
D2L_MISTAKE("block_sum", barrier_in_the_branch, BlockSum,
            "a barrier that not all");
D2L_MISTAKE("block_sum", tail_unwritten, BlockSum, "that nobody wrote");
D2L_MISTAKE("block_sum", all_store, BlockSum, "All threads of the block store");
D2L_MISTAKE("block_sum", every_second_thread, BlockSum, "conflicts of banks");
D2L_MISTAKE("block_sum", one_thread, BlockSum, "accesses to memory by one");
D2L_MISTAKE("block_sum", static_memory, BlockSum, "A static array is one");

}  // namespace
}  // namespace d2l
