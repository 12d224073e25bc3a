#include "common/exercise/kernel.h"

namespace d2l {
namespace {

namespace no_tile {
__global__ void Product(float* c, const float* a, const float* b, int m, int k,
                        int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int p = 0; p < k; ++p) sum += a[row * k + p] * b[p * n + column];
  c[row * n + column] = sum;
}
}  // namespace no_tile

namespace one_barrier {
__global__ void Product(float* c, const float* a, const float* b, int m, int k,
                        int n) {
  constexpr int kTile = 16;
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int begin = 0; begin < k; begin += kTile) {
    const bool in_a = row < m && begin + x < k;
    const bool in_b = begin + y < k && column < n;
    left[y][x] = in_a ? a[row * k + begin + x] : 0;
    right[y][x] = in_b ? b[(begin + y) * n + column] : 0;
    __syncthreads();
    for (int p = 0; p < kTile; ++p) sum += left[y][p] * right[p][x];
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
}  // namespace one_barrier

namespace edge_unwritten {
__global__ void Product(float* c, const float* a, const float* b, int m, int k,
                        int n) {
  constexpr int kTile = 16;
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int begin = 0; begin < k; begin += kTile) {
    const bool in_a = row < m && begin + x < k;
    const bool in_b = begin + y < k && column < n;
    if (in_a) left[y][x] = a[row * k + begin + x];
    if (in_b) right[y][x] = b[(begin + y) * n + column];
    __syncthreads();
    for (int p = 0; p < kTile; ++p) sum += left[y][p] * right[p][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
}  // namespace edge_unwritten

namespace returns_early {
__global__ void Product(float* c, const float* a, const float* b, int m, int k,
                        int n) {
  constexpr int kTile = 16;
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int begin = 0; begin < k; begin += kTile) {
    const bool in_a = row < m && begin + x < k;
    const bool in_b = begin + y < k && column < n;
    left[y][x] = in_a ? a[row * k + begin + x] : 0;
    right[y][x] = in_b ? b[(begin + y) * n + column] : 0;
    __syncthreads();
    for (int p = 0; p < kTile; ++p) sum += left[y][p] * right[p][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
}  // namespace returns_early

namespace turned_tile {
__global__ void Product(float* c, const float* a, const float* b, int m, int k,
                        int n) {
  constexpr int kTile = 16;
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int begin = 0; begin < k; begin += kTile) {
    const bool in_a = row < m && begin + x < k;
    const bool in_b = begin + y < k && column < n;
    left[x][y] = in_a ? a[row * k + begin + x] : 0;
    right[y][x] = in_b ? b[(begin + y) * n + column] : 0;
    __syncthreads();
    for (int p = 0; p < kTile; ++p) sum += left[p][y] * right[p][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
}  // namespace turned_tile

D2L_MISTAKE("tiled_product", no_tile, Product, "loads of global memory");
D2L_MISTAKE("tiled_product", one_barrier, Product,
            "the same word of shared memory");
D2L_MISTAKE("tiled_product", edge_unwritten, Product, "Write 0");
D2L_MISTAKE("tiled_product", returns_early, Product, "a barrier that not all");
D2L_MISTAKE("tiled_product", turned_tile, Product, "conflicts of banks");

}  // namespace
}  // namespace d2l
