#include "common/exercise/kernel.h"

namespace d2l {
namespace {

namespace strided_stores {
__global__ void Transpose(float* out, const float* in, int n) {
  const int x = blockIdx.x * 32 + threadIdx.x;
  const int y = blockIdx.y * 32 + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}
}  // namespace strided_stores

namespace strided_loads {
__global__ void Transpose(float* out, const float* in, int n) {
  const int x = blockIdx.x * 32 + threadIdx.x;
  const int y = blockIdx.y * 32 + threadIdx.y;
  out[y * n + x] = in[x * n + y];
}
}  // namespace strided_loads

namespace no_barrier {
__global__ void Transpose(float* out, const float* in, int n) {
  constexpr int kTile = 32;
  __shared__ float tile[kTile][kTile];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[(top + y) * n + left + x];
  out[(left + y) * n + top + x] = tile[x][y];
}
}  // namespace no_barrier

namespace tile_stays {
__global__ void Transpose(float* out, const float* in, int n) {
  constexpr int kTile = 32;
  __shared__ float tile[kTile][kTile];
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[(top + y) * n + left + x];
  __syncthreads();
  out[(top + y) * n + left + x] = tile[x][y];
}
}  // namespace tile_stays

D2L_MISTAKE("coalesced_transpose", strided_stores, Transpose,
            "each store of a warp touches 32.0");
D2L_MISTAKE("coalesced_transpose", strided_loads, Transpose,
            "each load of a warp touches 32.0");
D2L_MISTAKE("coalesced_transpose", no_barrier, Transpose,
            "the same word of shared memory");
D2L_MISTAKE("coalesced_transpose", tile_stays, Transpose,
            "goes to another place");

}  // namespace
}  // namespace d2l
