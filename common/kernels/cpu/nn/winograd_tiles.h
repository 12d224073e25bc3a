// The transforms of winograd.cc, of sixteen tiles at a time, with vectors: lane
// l of what is read and written belongs to tile l.
//
// A transformed tile has 36 numbers, number i of lane l at [i * step + l]. The
// others are smaller: a quad is four numbers of a row of a tile, side by side,
// and the sixteen tiles' quads lie one behind the other.
//
// Pure functions. The names of the matrices are Lavin's and Gray's. The points
// are 0, 5/8, -5/8, 3/2, -3/2 and infinity: the usual 0, 1, -1, 2, -2 double
// the errors, and make the largest five times as large.

#ifndef D2L_COMMON_KERNELS_CPU_NN_WINOGRAD_TILES_H_
#define D2L_COMMON_KERNELS_CPU_NN_WINOGRAD_TILES_H_

#include <cstdint>

namespace d2l::kernels::cpu {

inline constexpr int kTileLanes = 16;
inline constexpr int kTileNumbers = 36;

// B^T d B. Of each of the 6 rows of d, the first four columns, as quads, and
// the last two, as pairs.
struct InputTiles {
  alignas(64) float quads[6][4 * kTileLanes];
  alignas(64) float pairs[6][2 * kTileLanes];
};
void TransformInput(const InputTiles& tiles, float* out, std::int64_t step);

// A^T m A + bias, the quads of whose 4 rows are written.
struct OutputTiles {
  alignas(64) float quads[4][4 * kTileLanes];
};
void TransformOutput(const float* m, std::int64_t step, float bias,
                     OutputTiles& tiles);
// A y A^T.
void TransformGradient(const OutputTiles& tiles, float* out, std::int64_t step);

// G g G^T. Of each of the 9 numbers of g, all lanes.
struct KernelTiles {
  alignas(64) float taps[9][kTileLanes];
};
void TransformKernel(const KernelTiles& tiles, float* out, std::int64_t step);
// G^T m G.
void TransformKernelGradient(const float* m, std::int64_t step,
                             KernelTiles& tiles);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_NN_WINOGRAD_TILES_H_
