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

}  // namespace d2l::kernels::cuda
