#include "common/exercise/kernel.h"

namespace d2l {
namespace {

namespace no_padding {
__global__ void Transpose(float* out, const float* in, int rows, int columns) {
  constexpr int kTile = 32;
  __shared__ float tile[kTile][kTile];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  const int x = threadIdx.x, y = threadIdx.y;
  if (top + y < rows && left + x < columns) {
    tile[y][x] = in[(top + y) * columns + left + x];
  }
  __syncthreads();
  if (left + y < columns && top + x < rows) {
    out[(left + y) * rows + top + x] = tile[x][y];
  }
}
}  // namespace no_padding

namespace even_pitch {
__global__ void Transpose(float* out, const float* in, int rows, int columns) {
  constexpr int kTile = 32;
  __shared__ float tile[kTile][kTile + 2];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  const int x = threadIdx.x, y = threadIdx.y;
  if (top + y < rows && left + x < columns) {
    tile[y][x] = in[(top + y) * columns + left + x];
  }
  __syncthreads();
  if (left + y < columns && top + x < rows) {
    out[(left + y) * rows + top + x] = tile[x][y];
  }
}
}  // namespace even_pitch

namespace returns_early {
__global__ void Transpose(float* out, const float* in, int rows, int columns) {
  constexpr int kTile = 32;
  __shared__ float tile[kTile][kTile + 1];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  const int x = threadIdx.x, y = threadIdx.y;
  if (top + y >= rows || left + x >= columns) return;
  tile[y][x] = in[(top + y) * columns + left + x];
  __syncthreads();
  if (left + y < columns && top + x < rows) {
    out[(left + y) * rows + top + x] = tile[x][y];
  }
}
}  // namespace returns_early

namespace guard_is_not_turned {
__global__ void Transpose(float* out, const float* in, int rows, int columns) {
  constexpr int kTile = 32;
  __shared__ float tile[kTile][kTile + 1];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  const int x = threadIdx.x, y = threadIdx.y;
  if (top + y < rows && left + x < columns) {
    tile[y][x] = in[(top + y) * columns + left + x];
  }
  __syncthreads();
  if (top + y < rows && left + x < columns) {
    out[(left + y) * rows + top + x] = tile[x][y];
  }
}
}  // namespace guard_is_not_turned

D2L_MISTAKE("padded_transpose", no_padding, Transpose, "31.0 conflicts");
D2L_MISTAKE("padded_transpose", even_pitch, Transpose,
            "an odd number of words");
D2L_MISTAKE("padded_transpose", returns_early, Transpose, "not all threads");
D2L_MISTAKE("padded_transpose", guard_is_not_turned, Transpose,
            "The store has other coordinates");

}  // namespace
}  // namespace d2l
