#include "common/kernels/cuda/fake/check_kernels_testing.h"
#include "common/kernels/cuda/fake/words.h"

namespace d2l::kernels::cuda {

__global__ void CopyKernel(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

__global__ void NaiveTranspose(float* out, const float* in, int n) {
  const int x = blockIdx.x * kTile + threadIdx.x;
  const int y = blockIdx.y * kTile + threadIdx.y;
  out[x * n + y] = in[y * n + x];
}

template <int kWidth>
__device__ void Transpose(float (&tile)[kTile][kWidth], float* out,
                          const float* in, int n) {
  const int x = threadIdx.x, y = threadIdx.y;
  const int left = blockIdx.x * kTile, top = blockIdx.y * kTile;
  tile[y][x] = in[(top + y) * n + left + x];
  __syncthreads();
  out[(left + y) * n + top + x] = tile[x][y];
}

__global__ void TiledTranspose(float* out, const float* in, int n) {
  __shared__ float tile[kTile][kTile];
  Transpose(tile, out, in, n);
}

__global__ void PaddedTranspose(float* out, const float* in, int n) {
  __shared__ float tile[kTile][kTile + 1];
  Transpose(tile, out, in, n);
}

__global__ void ColumnSums(float* out, const float* in, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int row = 0; row < rows; ++row) sum += in[row * columns + column];
  out[column] = sum;
}

__global__ void TiledProduct(float* c, const float* a, const float* b, int n) {
  constexpr int kSide = 16;
  __shared__ float left[kSide][kSide];
  __shared__ float right[kSide][kSide];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * kSide + y, column = blockIdx.x * kSide + x;
  float sum = 0;
  for (int begin = 0; begin < n; begin += kSide) {
    left[y][x] = a[row * n + begin + x];
    right[y][x] = b[(begin + y) * n + column];
    __syncthreads();
    for (int k = 0; k < kSide; ++k) sum += left[y][k] * right[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void WarpSum(float* out, const float* in) {
  float sum = in[threadIdx.x];
  for (int delta = 16; delta > 0; delta /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, delta);
  }
  const unsigned positive = __ballot_sync(0xffffffffu, in[threadIdx.x] > 0);
  if (threadIdx.x % 32 == 0) {
    out[threadIdx.x / 32 * 2] = sum;
    out[threadIdx.x / 32 * 2 + 1] = static_cast<float>(positive & 0xff);
  }
}

__global__ void Histogram(int* counts, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[in[i]], 1);
}

// ---- Right, in a style of their own; those with a flag only if it is set.

__global__ void SumOfWarp(float* out, const float* in, bool orders) {
  __shared__ volatile float sum[64];
  const int t = threadIdx.x, lane = t % 32;
  sum[t] = in[t];
  for (int half = 16; half > 0; half /= 2) {
    if (orders) __syncwarp();
    const float more = sum[t ^ half];
    if (orders) __syncwarp();
    sum[t] = sum[t] + more;
  }
  if (lane == 0) out[t / 32] = sum[t];
}

__global__ void TakeTurns(float* out, const float* in, int n, bool orders) {
  __shared__ float tile[2][64];
  const int t = threadIdx.x;
  float sum = 0;
  tile[0][t] = in[t];
  for (int i = 0; i < n; ++i) {
    __syncthreads();
    sum += tile[i % 2][63 - t];
    const int next = orders ? (i + 1) % 2 : i % 2;
    if (i + 1 < n) tile[next][t] = in[64 * (i + 1) + t];
  }
  out[t] = sum;
}

__global__ void WholeBlocksReturn(float* out, const float* in, int n) {
  __shared__ float row[64];
  if (static_cast<int>(blockIdx.x) * 64 >= n) return;
  const int t = threadIdx.x;
  row[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  out[blockIdx.x * 64 + t] = row[63 - t] + __shfl_xor_sync(~0u, row[t], 1);
}

__global__ void SwizzledTranspose(float* out, const float* in) {
  __shared__ float tile[32][32];
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x ^ y] = in[y * 32 + x];
  __syncthreads();
  out[y * 32 + x] = tile[x][y ^ x];
}

__global__ void SumByLastBlock(float* out, const float* in, float* partial,
                               unsigned* arrived, bool fences) {
  __shared__ float sum[32];
  __shared__ bool last;
  const unsigned t = threadIdx.x;
  sum[t] = in[blockIdx.x * 32 + t];
  for (unsigned half = 16; half > 0; half /= 2) {
    __syncwarp();
    if (t < half) sum[t] += sum[t + half];
  }
  if (t == 0) {
    partial[blockIdx.x] = sum[0];
    if (fences) __threadfence();
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  float all = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) all += partial[i];
  if (t == 31) out[0] = all;
}

__global__ void FlagInABlock(float* out, int* flag, bool fences) {
  __shared__ float word;
  if (threadIdx.x == 0) {
    word = 5;
    if (fences) __threadfence_block();
    atomicExch(flag, 1);
  }
  // Another warp, that does not wait for the flag: it may come too early.
  if (threadIdx.x == 32) out[0] = atomicAdd(flag, 0) == 1 ? word : 5;
}

__global__ void SyncWithEndedLanes(float* out, const float* in) {
  if (threadIdx.x >= 20) return;
  __syncwarp();
  const unsigned positive = __ballot_sync(~0u, in[threadIdx.x] > 0);
  out[threadIdx.x] = static_cast<float>(positive);
}

// ---- Each with one fault.

__global__ void NoBarrier(float* out, const float* in) {
  __shared__ float row[64];
  row[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = row[63 - threadIdx.x];
}

__global__ void ReachedByHalf(float* out, const float* in) {
  if (threadIdx.x < 32) __syncthreads();
  out[threadIdx.x] = in[threadIdx.x];
}

__global__ void ShiftedIndex(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i / 2] = in[i];
}

__global__ void PlainHistogram(int* counts, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) counts[in[i]] += 1;
}

__global__ void NeverWritten(float* out) {
  __shared__ float row[64];
  if (threadIdx.x > 0) row[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x];
}

__global__ void BeyondTheTile(float* out, const float* in, int offset) {
  __shared__ float row[64];
  row[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) out[0] = row[offset];
}

__global__ void BeyondTheEnd(float* out, const float* in, int n) {
  if (threadIdx.x == 0) {
    const uint4* const last = reinterpret_cast<const uint4*>(in + n - 2);
    out[0] = static_cast<float>(last->w);
  }
}

__global__ void Misaligned(float* out, const char* in) {
  out[threadIdx.x] = *reinterpret_cast<const float*>(in + 4 * threadIdx.x + 2);
}

__global__ void MisalignedVectors(float* out, const float* in) {
  *reinterpret_cast<uint4*>(out + 4 * threadIdx.x) =
      *reinterpret_cast<const uint4*>(in + 4 * threadIdx.x + 1);
}

__global__ void LastOneWins(int* out) {
  out[0] = static_cast<int>(threadIdx.x);
}

__global__ void StrandedLanes(int* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, out[threadIdx.x], 16);
  }
}

__global__ void OutsideTheMask(unsigned* out) {
  out[threadIdx.x] = __shfl_sync(1u, threadIdx.x, 0);
}

__global__ void MasksThatDiffer(unsigned* out) {
  const unsigned mask = threadIdx.x < 16 ? 0xffffffffu : 0xffff8000u;
  out[threadIdx.x] = __shfl_xor_sync(mask, threadIdx.x, 1);
}

__global__ void WordsThatDiffer(unsigned* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __ballot_sync(~0u, 1);
  } else {
    out[threadIdx.x] = __any_sync(~0u, 1);
  }
}

__global__ void ReadsAnEndedLane(int* out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = __shfl_down_sync(~0u, 7, 2);
}

__global__ void TwoBarriers(float* out, const float* in) {
  __shared__ float row[64];
  row[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
    out[threadIdx.x] = row[63 - threadIdx.x];
  } else {
    __syncthreads();
    out[threadIdx.x] = row[63 - threadIdx.x] + 1;
  }
}

__global__ void PartOfTheWarpSyncs(float* out) {
  __shared__ float row[32];
  const int t = threadIdx.x;
  row[t] = static_cast<float>(t);
  if (t < 16) __syncwarp(0xffffu);
  out[t] = row[t ^ 16];
}

__device__ int device_counts[8];

__global__ void DeviceHistogram(int* counts, const int* in, int n) {
  const int i = threadIdx.x;
  if (i < n) ++device_counts[in[i]];
  __syncthreads();
  if (i < 8) counts[i] = device_counts[i];
}

__global__ void StaticScratch(float* out, const float* in) {
  static float scratch[64];  // one for all blocks
  scratch[threadIdx.x] = in[threadIdx.x + blockIdx.x];
  __syncthreads();
  out[64 * blockIdx.x + threadIdx.x] = scratch[63 - threadIdx.x];
}

// `scratch` is dynamic shared memory of 64 words.
__global__ void BeyondDynamicShared(float* out, float* scratch) {
  scratch[threadIdx.x + 1] = 1;
  out[threadIdx.x] = scratch[threadIdx.x + 1];
}

}  // namespace d2l::kernels::cuda
