// tiled_product: each number is loaded once for sixteen.
//
//   bazel run //:exercises -- tiled_product

#include "common/exercise/kernel.h"

namespace d2l {
namespace {

constexpr int kTile = 16;

// c = a b: a is (m, k), b (k, n), c (m, n), of any size. Blocks are 16 x 16
// threads; the grid covers the columns of c in x, its rows in y. A block goes
// through tiles of a and b: each thread loads one number of each into shared
// memory, and all use them 16 times.
__global__ void Product(float* c, const float* a, const float* b, int m, int k,
                        int n) {
  // SOLUTION
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
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
  // END
}

D2L_ANSWER("tiled_product", Product);

}  // namespace
}  // namespace d2l
