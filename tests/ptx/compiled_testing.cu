#include <cmath>
#include <cstdint>

#include "tests/ptx/compiled_testing.h"

namespace d2l::ptx {
namespace {

__global__ void ParametersKernel(int* out, Mixed mixed, char small,
                                 short medium, const int* in, int which) {
  if (threadIdx.x != 0) return;
  out[0] = mixed.numbers[which];
  out[1] = static_cast<int>(mixed.number * 2);
  out[2] = mixed.letter + small + medium;
  out[3] = in[which];
}

__global__ void WarpFunctionsKernel(unsigned* out) {
  const unsigned all = 0xffffffff, t = threadIdx.x;
  unsigned sum = 3 * t + 1;
  for (int m = 16; m > 0; m /= 2) sum += __shfl_xor_sync(all, sum, m);
  out[t] = sum;
  out[64 + t] = __shfl_up_sync(all, t, 3, /*width=*/8);
  out[128 + t] = __ballot_sync(all, t % 3 == 0);
  out[192 + t] = t % 2 == 0 ? __shfl_sync(0x55555555, t, 2) : t;
}

__host__ __device__ double SlowFunction(double x, int power) {
  double numbers[8] = {1};
  for (int i = 1; i < 8; ++i) numbers[i] = numbers[i - 1] * x;
  return numbers[power];
}
__device__ __noinline__ double SlowOnGpu(double x, int power) {
  return SlowFunction(x, power);
}
__global__ void CallsKernel(double* out, const double* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = SlowOnGpu(in[i], i % 8);
}

__global__ void AtomicsKernel(int* counts, float* sum,
                              unsigned long long* largest, const int* in,
                              int n) {
  __shared__ int mine[16];
  if (threadIdx.x < 16) mine[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&mine[in[i] & 15], 1);
    atomicAdd(sum, 0.5f);
    atomicMax(largest, static_cast<unsigned long long>(in[i]) << 33);
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

__global__ void MathKernel(double* out, double x, std::int64_t z) {
  const int t = threadIdx.x;
  const float f = static_cast<float>(x);
  out[t] = expf(f + t);
  out[32 + t] = f / (t + 3);
  out[64 + t] = exp(x + t);
  out[96 + t] = log(x + t);
  out[128 + t] = pow(x, t + 0.5);
  out[160 + t] = fma(x, t + 0.1, -x);
  out[192 + t] = z / (t + 1) - z % (t + 7);
  out[224 + t] = static_cast<double>(static_cast<std::int64_t>(x * t * -1.5));
}

__global__ void ReverseKernel(int* data) {
  extern __shared__ int buffer[];
  buffer[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

// ---- With faults.

__global__ void MisalignedKernel(float* data) {
  const float4 four = *reinterpret_cast<const float4*>(data + 1);
  data[0] = four.x + four.w;
}
__global__ void BeyondKernel(int* data, int at) { data[at] = 1; }
__global__ void SharedBeyondKernel(int* data, int at) {
  __shared__ int buffer[8];
  buffer[threadIdx.x % 8] = 1;
  __syncthreads();
  data[0] = buffer[at];
}
__global__ void MissingBarrierKernel(int* data) {
  __shared__ int buffer[64];
  buffer[threadIdx.x] = data[threadIdx.x];
  data[threadIdx.x] = buffer[threadIdx.x / 2];
}
__global__ void UnwrittenKernel(int* data) {
  __shared__ int buffer[64];
  if (threadIdx.x > 0) buffer[threadIdx.x] = 1;
  __syncthreads();
  data[threadIdx.x] = buffer[threadIdx.x];
}
__global__ void LostBarrierKernel(int* data) {
  if (threadIdx.x < 40) {
    __syncthreads();
    data[0] = 1;
  } else {
    __syncthreads();
    data[1] = 2;
  }
}
__global__ void WrongMaskKernel(int* data) {
  if (threadIdx.x % 2 == 0) {
    data[threadIdx.x] = __shfl_down_sync(0xffffffff, data[threadIdx.x], 2);
  }
}
__global__ void AbsentLaneKernel(int* data) {
  if (threadIdx.x % 2 == 0) {
    data[threadIdx.x] = __shfl_xor_sync(0x55555555, data[threadIdx.x], 1);
  }
}
__global__ void EndlessKernel(volatile int* data) {
  while (data[0] == 0) {
  }
}
__global__ void TrapKernel() { __trap(); }
__global__ void __launch_bounds__(64) BoundedKernel(int* data) {
  data[threadIdx.x] = 1;
}

}  // namespace

void LaunchParameters(int* out, const Mixed& mixed, char small, short medium,
                      const int* in, int which) {
  ParametersKernel<<<1, 32>>>(out, mixed, small, medium, in, which);
}
void LaunchWarpFunctions(unsigned* out) { WarpFunctionsKernel<<<1, 64>>>(out); }
void LaunchCalls(double* out, const double* in, int n) {
  CallsKernel<<<3, 128>>>(out, in, n);
}
double Slow(double x, int power) { return SlowFunction(x, power); }
void LaunchAtomics(int* counts, float* sum, unsigned long long* largest,
                   const int* in, int n) {
  AtomicsKernel<<<4, 256>>>(counts, sum, largest, in, n);
}
void LaunchMath(double* out, double x, std::int64_t z) {
  MathKernel<<<1, 32>>>(out, x, z);
}
void LaunchReverse(int* data) {
  ReverseKernel<<<1, 64, 64 * sizeof(int)>>>(data);
}

void LaunchMisaligned(float* data) { MisalignedKernel<<<1, 1>>>(data); }
void LaunchBeyond(int* data, int at) { BeyondKernel<<<1, 1>>>(data, at); }
void LaunchSharedBeyond(int* data, int at) {
  SharedBeyondKernel<<<1, 32>>>(data, at);
}
void LaunchMissingBarrier(int* data) { MissingBarrierKernel<<<1, 64>>>(data); }
void LaunchUnwritten(int* data) { UnwrittenKernel<<<1, 64>>>(data); }
void LaunchLostBarrier(int* data) { LostBarrierKernel<<<1, 64>>>(data); }
void LaunchWrongMask(int* data) { WrongMaskKernel<<<1, 32>>>(data); }
void LaunchAbsentLane(int* data) { AbsentLaneKernel<<<1, 32>>>(data); }
void LaunchEndless(int* data) { EndlessKernel<<<1, 1>>>(data); }
void LaunchTrap() { TrapKernel<<<1, 1>>>(); }
void LaunchNull() { BeyondKernel<<<1, 1>>>(nullptr, 0); }
void LaunchTooLarge(int* data, int threads) {
  BoundedKernel<<<1, threads>>>(data);
}
void LaunchTooMuchShared(int* data) {
  ReverseKernel<<<1, 64, (48 << 10) + 4>>>(data);
}
void LaunchEmptyGrid(int* data) { BoundedKernel<<<0, 64>>>(data); }

}  // namespace d2l::ptx
