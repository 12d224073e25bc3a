// A matrix product on a GPU, in four steps. c = a b; all are n x n, row-major,
// and n is a multiple of 64.

#include <cmath>
#include <vector>

#include "chapters/profiling/ladders/kernel_ladder.h"
#include "common/kernels/cuda/fake/words.h"

namespace d2l::profiling {
namespace {

// %% d2l/kernel-ladder
// Step 1: a thread computes an element of c. The neighbour in x has the next
// row, so that 32 threads read 32 rows of a, and write to 32 rows of c.
__global__ void Naive(float* c, const float* a, const float* b, int n) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int column = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int p = 0; p < n; ++p) {
    sum = fmaf(a[row * n + p], b[p * n + column], sum);
  }
  c[row * n + column] = sum;
}

// Step 2: the neighbour in x has the next column. A warp reads one number of a,
// which serves all its threads, and 32 neighbours of b.
__global__ void Coalesced(float* c, const float* a, const float* b, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int p = 0; p < n; ++p) {
    sum = fmaf(a[row * n + p], b[p * n + column], sum);
  }
  c[row * n + column] = sum;
}

// %% d2l/kernel-ladder
// Step 3: a block of 32 x 32 threads loads a tile of a and one of b into shared
// memory, a number of each by each thread; all use every number 32 times.
__global__ void SharedTiles(float* c, const float* a, const float* b, int n) {
  constexpr int kTile = 32;
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int begin = 0; begin < n; begin += kTile) {
    left[y][x] = a[row * n + begin + x];
    right[y][x] = b[(begin + y) * n + column];
    __syncthreads();  // all have loaded
    for (int p = 0; p < kTile; ++p) {
      sum = fmaf(left[y][p], right[p][x], sum);
    }
    __syncthreads();  // all have used the tiles, which may be overwritten
  }
  c[row * n + column] = sum;
}

// %% d2l/kernel-ladder
// Step 4: a thread computes 4 x 4 elements, 16 apart, in registers. For 8
// numbers from shared memory it multiplies 16 times, in step 3 once for 2. A
// block of 16 x 16 threads has 64 x 64 elements, so that a number that it loads
// from memory is used 64 times.
__global__ void RegisterTiles(float* c, const float* a, const float* b, int n) {
  constexpr int kTile = 64, kDepth = 16, kThreads = 16, kEach = 4;
  __shared__ float left[kTile][kDepth], right[kDepth][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
  float sums[kEach][kEach] = {};
  for (int begin = 0; begin < n; begin += kDepth) {
    // 256 threads load 1024 numbers of each: neighbours load neighbours.
    for (int i = 0; i < kEach; ++i) {
      const int row = y + i * kThreads;
      left[row][x] = a[(first_row + row) * n + begin + x];
      const int column = x + i * kThreads;
      right[y][column] = b[(begin + y) * n + first_column + column];
    }
    __syncthreads();
    for (int p = 0; p < kDepth; ++p) {
      float of_a[kEach], of_b[kEach];
      for (int i = 0; i < kEach; ++i) {
        of_a[i] = left[y + i * kThreads][p];
        of_b[i] = right[p][x + i * kThreads];
      }
      for (int i = 0; i < kEach; ++i) {
        for (int j = 0; j < kEach; ++j) {
          sums[i][j] = fmaf(of_a[i], of_b[j], sums[i][j]);
        }
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < kEach; ++i) {
    for (int j = 0; j < kEach; ++j) {
      const int row = first_row + y + i * kThreads;
      c[row * n + first_column + x + j * kThreads] = sums[i][j];
    }
  }
}
// %%

}  // namespace

// The C++ compiler compiles this file, too, for the model of a GPU.
#ifdef __CUDACC__
std::vector<KernelStep> StepsForGpu() {
#else
std::vector<KernelStep> StepsForModel() {
#endif
  return {{"naive", Naive, 32, 8, 32, 8, /*rows_in_x=*/true},
          {"coalesced", Coalesced, 8, 32, 32, 8},
          {"shared tiles", SharedTiles, 32, 32, 32, 32},
          {"register tiles", RegisterTiles, 64, 64, 16, 16}};
}

}  // namespace d2l::profiling
