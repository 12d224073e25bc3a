// The transforms of winograd.cc for sixteen tiles at a time, with vectors: lane
// l of the inputs and outputs belongs to tile l.
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

// Raises each of `largest`, which are not negative, to the absolute value of
// the number in its place. NaN counts as larger than infinity.
void RaiseToMagnitudes(const float* numbers, std::int64_t count,
                       float* largest);

// Whether all absolute values are less than `bound`, as NaN's is not.
bool AllBelow(float bound, const float* numbers, std::int64_t count);

// Computes B^T d B. Each of the 6 rows of d is stored as its first four
// columns, the quads, and its last two, the pairs.
struct InputTiles {
  alignas(64) float quads[6][4 * kTileLanes];
  alignas(64) float pairs[6][2 * kTileLanes];
};
void TransformInput(const InputTiles& tiles, float* out, std::int64_t step);

// Computes A^T m A + bias, and writes the quads of its 4 rows.
struct OutputTiles {
  alignas(64) float quads[4][4 * kTileLanes];
};
void TransformOutput(const float* m, std::int64_t step, float bias,
                     OutputTiles& tiles);
// Computes A y A^T.
void TransformGradient(const OutputTiles& tiles, float* out, std::int64_t step);

// Computes G g G^T. Each of the 9 numbers of g is stored for all lanes.
struct KernelTiles {
  alignas(64) float taps[9][kTileLanes];
};
void TransformKernel(const KernelTiles& tiles, float* out, std::int64_t step);
// Computes G^T m G.
void TransformKernelGradient(const float* m, std::int64_t step,
                             KernelTiles& tiles);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_NN_WINOGRAD_TILES_H_
