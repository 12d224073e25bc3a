#include "common/exercise/kernel.h"

namespace d2l {
namespace {

namespace as_given {
__global__ void Blur(float* y, const float* x, int n) {
  __shared__ float tile[66];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (i >= n) return;
  tile[t + 1] = x[i];
  if (t == 0) tile[0] = x[i - 1];
  if (t == 63) tile[65] = i + 1 < n ? x[i + 1] : 0;
  __syncthreads();
  y[i] = (tile[t] + tile[t + 1] + tile[t + 2]) / 3;
}
}  // namespace as_given

namespace still_returns {
__global__ void Blur(float* y, const float* x, int n) {
  __shared__ float tile[66];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (i >= n) return;
  tile[t + 1] = x[i];
  if (t == 0) tile[0] = i > 0 ? x[i - 1] : 0;
  if (t == 63) tile[65] = i + 1 < n ? x[i + 1] : 0;
  __syncthreads();
  y[i] = (tile[t] + tile[t + 1] + tile[t + 2]) / 3;
}
}  // namespace still_returns

namespace tail_unwritten {
__global__ void Blur(float* y, const float* x, int n) {
  __shared__ float tile[66];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (i < n) tile[t + 1] = x[i];
  if (t == 0) tile[0] = i > 0 ? x[i - 1] : 0;
  if (t == 63) tile[65] = i + 1 < n ? x[i + 1] : 0;
  __syncthreads();
  if (i < n) y[i] = (tile[t] + tile[t + 1] + tile[t + 2]) / 3;
}
}  // namespace tail_unwritten

namespace no_barrier {
__global__ void Blur(float* y, const float* x, int n) {
  __shared__ float tile[66];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  tile[t + 1] = i < n ? x[i] : 0;
  if (t == 0) tile[0] = i > 0 ? x[i - 1] : 0;
  if (t == 63) tile[65] = i + 1 < n ? x[i + 1] : 0;
  if (i < n) y[i] = (tile[t] + tile[t + 1] + tile[t + 2]) / 3;
}
}  // namespace no_barrier

namespace blocks_without_neighbours {
__global__ void Blur(float* y, const float* x, int n) {
  __shared__ float tile[66];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  tile[t + 1] = i < n ? x[i] : 0;
  if (t == 0) tile[0] = 0;
  if (t == 63) tile[65] = 0;
  __syncthreads();
  if (i < n) y[i] = (tile[t] + tile[t + 1] + tile[t + 2]) / 3;
}
}  // namespace blocks_without_neighbours

namespace no_shared_memory {
__global__ void Blur(float* y, const float* x, int n) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  const float left = i > 0 ? x[i - 1] : 0;
  const float right = i + 1 < n ? x[i + 1] : 0;
  y[i] = (left + x[i] + right) / 3;
}
}  // namespace no_shared_memory

namespace one_thread {
__global__ void Blur(float* y, const float* x, int n) {
  if (threadIdx.x > 0) return;
  const int begin = blockIdx.x * 64;
  float left = begin > 0 ? x[begin - 1] : 0, middle = begin < n ? x[begin] : 0;
  for (int i = begin; i < n && i < begin + 64; ++i) {
    const float right = i + 1 < n ? x[i + 1] : 0;
    y[i] = (left + middle + right) / 3;
    left = middle;
    middle = right;
  }
}
}  // namespace one_thread

D2L_MISTAKE("two_faults", as_given, Blur, "before the first");
D2L_MISTAKE("two_faults", still_returns, Blur, "a barrier that not all");
D2L_MISTAKE("two_faults", tail_unwritten, Blur, "that nobody wrote");
D2L_MISTAKE("two_faults", no_barrier, Blur, "the same word of shared memory");
D2L_MISTAKE("two_faults", blocks_without_neighbours, Blur,
            "belongs to the next block");
D2L_MISTAKE("two_faults", no_shared_memory, Blur, "A number is loaded once");
D2L_MISTAKE("two_faults", one_thread, Blur, "thousands of threads");

}  // namespace
}  // namespace d2l
