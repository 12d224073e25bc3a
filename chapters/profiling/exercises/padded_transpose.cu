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
  // YOUR CODE
  KernelIsNotDone();
}

D2L_ANSWER("padded_transpose", Transpose);

}  // namespace
}  // namespace d2l
