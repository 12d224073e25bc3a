// Copies that turn rows into columns. The input is contiguous along one
// dimension and the output along another, so threads side by side cannot both
// read and write side by side unless a tile is transposed in between.
//
//   Transposition turn;
//   if (FindTransposition(layout, &turn)) …  // tiles
//
// Pure functions; thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_TRANSPOSITION_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_TRANSPOSITION_H_

#include <cstdint>

#include "common/kernels/host_device.h"
#include "common/kernels/layout.h"

namespace d2l::kernels::cuda {

// A tile's sides.
inline constexpr int kTransposedTile = 32;

// Element (b, r, c) is in[b in_batch + r + c in_column] and goes to
// out[b out_batch + r out_row + c].
struct Transposition {
  std::int64_t batch, rows, columns;
  std::int64_t in_batch, in_column;
  std::int64_t out_batch, out_row;

  D2L_HOST_DEVICE std::int64_t TilesDown() const {
    return (rows + kTransposedTile - 1) / kTransposedTile;
  }
  D2L_HOST_DEVICE std::int64_t TilesAcross() const {
    return (columns + kTransposedTile - 1) / kTransposedTile;
  }
  D2L_HOST_DEVICE std::int64_t Tiles() const {
    return batch * TilesDown() * TilesAcross();
  }
};

// `layout` is collapsed and has one input. Returns false if the copy is of
// another kind, or so narrow that tiles would be mostly empty.
inline bool FindTransposition(const StridedLayout& layout,
                              Transposition* turn) {
  constexpr std::int64_t kLeast = 8;
  const int rank = layout.shape.rank();
  if (rank < 2 || rank > 3) return false;
  const int c = rank - 1;
  int r = -1;
  for (int d = 0; d < c; ++d) {
    if (layout.in[0][d] == 1) r = d;
  }
  if (r < 0 || layout.out[c] != 1) return false;
  if (layout.shape[r] < kLeast || layout.shape[c] < kLeast) return false;
  *turn = {1, layout.shape[r], layout.shape[c], 0, layout.in[0][c],
           0, layout.out[r]};
  if (rank == 3) {
    const int b = 1 - r;
    turn->batch = layout.shape[b];
    turn->in_batch = layout.in[0][b];
    turn->out_batch = layout.out[b];
  }
  return true;
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_TRANSPOSITION_H_
