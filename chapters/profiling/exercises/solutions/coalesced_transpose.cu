// coalesced_transpose: neighbours read and write neighbours.
//
//   bazel run //:exercises -- coalesced_transpose

#include "common/exercise/kernel.h"

namespace d2l {
namespace {

constexpr int kTile = 32;

// out[j][i] = in[i][j], both (n, n), n a multiple of 32. Blocks are 32 x 32
// threads, the grid is (n / 32, n / 32). A warp's loads and its stores touch
// 4 sectors of 32 bytes each: threads of a warp, which differ in threadIdx.x,
// read side by side, and write side by side.
__global__ void Transpose(float* out, const float* in, int n) {
  // SOLUTION
  __shared__ float tile[kTile][kTile];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[(top + y) * n + left + x];
  __syncthreads();
  out[(left + y) * n + top + x] = tile[x][y];
  // END
}

D2L_ANSWER("coalesced_transpose", Transpose);

}  // namespace
}  // namespace d2l
