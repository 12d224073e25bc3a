// padded_transpose: a tile without conflicts.
//
//   bazel run //:exercises -- padded_transpose

#include "common/exercise/kernel.h"

namespace d2l {
namespace {

constexpr int kTile = 32;

// out[j][i] = in[i][j]: in is (rows, columns), out (columns, rows), of any
// size. Blocks are 32 x 32 threads; the grid covers the columns in x, the rows
// in y. As in coalesced_transpose, and no two threads of a warp use two words
// of one bank of shared memory. Bank b holds the words b, b + 32, b + 64, ...
__global__ void Transpose(float* out, const float* in, int rows, int columns) {
  // SOLUTION
  __shared__ float tile[kTile][kTile + 1];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  const int x = threadIdx.x, y = threadIdx.y;
  if (top + y < rows && left + x < columns) {
    tile[y][x] = in[(top + y) * columns + left + x];
  }
  __syncthreads();
  if (left + y < columns && top + x < rows) {
    out[(left + y) * rows + top + x] = tile[x][y];
  }
  // END
}

D2L_ANSWER("padded_transpose", Transpose);

}  // namespace
}  // namespace d2l
