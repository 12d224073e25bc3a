#include "common/exercise/kernel.h"

namespace d2l {
namespace {

namespace plain_addition {
__global__ void Histogram(int* counts, const int* x, int n, int bins) {
  __shared__ int mine[256];
  const int t = threadIdx.x, threads = blockDim.x;
  for (int bin = t; bin < bins; bin += threads) mine[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads) {
    ++mine[x[i]];
  }
  __syncthreads();
  for (int bin = t; bin < bins; bin += threads) {
    atomicAdd(&counts[bin], mine[bin]);
  }
}
}  // namespace plain_addition

namespace plain_addition_to_counts {
__global__ void Histogram(int* counts, const int* x, int n, int bins) {
  __shared__ int mine[256];
  const int t = threadIdx.x, threads = blockDim.x;
  for (int bin = t; bin < bins; bin += threads) mine[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads) {
    atomicAdd(&mine[x[i]], 1);
  }
  __syncthreads();
  for (int bin = t; bin < bins; bin += threads) {
    counts[bin] += mine[bin];
  }
}
}  // namespace plain_addition_to_counts

namespace no_second_barrier {
__global__ void Histogram(int* counts, const int* x, int n, int bins) {
  __shared__ int mine[256];
  const int t = threadIdx.x, threads = blockDim.x;
  for (int bin = t; bin < bins; bin += threads) mine[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads) {
    atomicAdd(&mine[x[i]], 1);
  }
  for (int bin = t; bin < bins; bin += threads) {
    atomicAdd(&counts[bin], mine[bin]);
  }
}
}  // namespace no_second_barrier

namespace zeroes_one_each {
__global__ void Histogram(int* counts, const int* x, int n, int bins) {
  __shared__ int mine[256];
  const int t = threadIdx.x, threads = blockDim.x;
  mine[t] = 0;
  __syncthreads();
  for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads) {
    atomicAdd(&mine[x[i]], 1);
  }
  __syncthreads();
  for (int bin = t; bin < bins; bin += threads) {
    atomicAdd(&counts[bin], mine[bin]);
  }
}
}  // namespace zeroes_one_each

namespace counts_in_global_memory {
__global__ void Histogram(int* counts, const int* x, int n, int bins) {
  const int all = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += all) {
    atomicAdd(&counts[x[i]], 1);
  }
}
}  // namespace counts_in_global_memory

namespace thread_for_each_bin {
__global__ void Histogram(int* counts, const int* x, int n, int bins) {
  const int all = gridDim.x * blockDim.x;
  for (int bin = blockIdx.x * blockDim.x + threadIdx.x; bin < bins;
       bin += all) {
    int count = 0;
    for (int i = 0; i < n; ++i) count += x[i] == bin ? 1 : 0;
    counts[bin] = count;
  }
}
}  // namespace thread_for_each_bin

namespace a_bin_for_each_thread {
__global__ void Histogram(int* counts, const int* x, int n, int bins) {
  __shared__ int mine[256];
  const int t = threadIdx.x, threads = blockDim.x;
  for (int bin = t; bin < 256; bin += threads) mine[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * threads + t; i < n; i += gridDim.x * threads) {
    atomicAdd(&mine[x[i]], 1);
  }
  __syncthreads();
  if (t < bins) atomicAdd(&counts[t], mine[t]);
}
}  // namespace a_bin_for_each_thread

D2L_MISTAKE("histogram", plain_addition, Histogram, "reads, adds and writes");
D2L_MISTAKE("histogram", plain_addition_to_counts, Histogram,
            "Other blocks add");
D2L_MISTAKE("histogram", no_second_barrier, Histogram, "between counting and");
D2L_MISTAKE("histogram", zeroes_one_each, Histogram, "more bins than threads");
D2L_MISTAKE("histogram", counts_in_global_memory, Histogram,
            "accesses of counts");
D2L_MISTAKE("histogram", thread_for_each_bin, Histogram,
            "a thread for each bin");
D2L_MISTAKE("histogram", a_bin_for_each_thread, Histogram,
            "Each number is counted once, and");

}  // namespace
}  // namespace d2l
