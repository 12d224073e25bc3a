#include <cuda_runtime.h>
#include <device_launch_parameters.h>

#include <cassert>
#include <cfloat>
#include <cstdio>

#include "common/kernels/cuda/fake/words_testing.h"

namespace d2l::kernels::cuda {
namespace {

constexpr unsigned kAll = 0xffffffffu;

__device__ unsigned blocks_done = 0;
__constant__ float factor = 0.5f;

}  // namespace

__global__ void Shuffles(int* out, const int* in) {
  const int lane = threadIdx.x;
  int* to = out + lane;
  for (int width = 32; width >= 2; width /= 2) {
    const int value = in[lane];
    to[0 * kWidths * 32] = __shfl_sync(kAll, value, lane * 7 + 3, width);
    to[1 * kWidths * 32] = __shfl_up_sync(kAll, value, 3, width);
    to[2 * kWidths * 32] = __shfl_down_sync(kAll, value, 3, width);
    to[3 * kWidths * 32] = __shfl_xor_sync(kAll, value, 5, width);
    const double half = __shfl_xor_sync(kAll, value * 0.5, 1, width);
    to[4 * kWidths * 32] = static_cast<int>(half * 2);
    to += 32;
  }
}

__global__ void Votes(unsigned* out, const int* in) {
  const int lane = threadIdx.x, value = in[lane];
  int alike = 0, i = 0;
  const auto write = [&](unsigned result) { out[32 * i++ + lane] = result; };
  write(__ballot_sync(kAll, value & 1));
  write(__any_sync(kAll, value == in[3]));
  write(__any_sync(kAll, 0));
  write(__all_sync(kAll, value == in[3]));
  write(__all_sync(kAll, 2));
  write(__match_any_sync(kAll, value));
  write(__match_all_sync(kAll, value, &alike));
  write(alike);
  write(__match_all_sync(kAll, 5LL, &alike));
  write(alike);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  write(__reduce_add_sync(kAll, value));
  write(__reduce_min_sync(kAll, value));
  write(__reduce_max_sync(kAll, static_cast<unsigned>(value)));
  write(__reduce_xor_sync(kAll, static_cast<unsigned>(value)));
#endif
}

__global__ void PartsOfAWarp(int* out, const int* in) {
  const int lane = threadIdx.x;
  const unsigned mask = lane < 12 ? 0xfffu : ~0xfffu;
  int value = in[lane];
  if (lane < 12) {
    value = __shfl_sync(mask, value, 11);
    __syncwarp(mask);
  } else {
    value = __shfl_sync(mask, value, 12);
  }
  __syncwarp();
  out[lane] = value;
}

__global__ void ActiveLanes(unsigned* out) {
  const int lane = threadIdx.x;
  if (lane % 3 == 0) {
    const unsigned mask = __activemask();
    out[lane] = __ballot_sync(mask, 1) == mask ? mask >> lane & 1 : 0;
  }
}

__global__ void BarriersThatCount(int* out, const int* in) {
  const int t = threadIdx.x, even = in[t] % 2 == 0;
  out[4 * t] = __syncthreads_count(even);
  out[4 * t + 1] = __syncthreads_and(even);
  out[4 * t + 2] = __syncthreads_or(even);
  out[4 * t + 3] = __syncthreads_and(in[t] | 1);
}

__global__ void IntegerAtomics(int* to, const int* in) {
  const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  auto* const bits = reinterpret_cast<unsigned*>(to);
  atomicAdd(&to[0], value);
  atomicSub(&to[1], value);
  atomicMin(&to[2], value);
  atomicMax(&to[3], value);
  atomicAnd(&bits[4], ~(1u << (value & 31)));
  atomicOr(&to[5], 1 << (value & 31));
  atomicXor(&bits[6], static_cast<unsigned>(value));
  atomicInc(&bits[7], 4);
  atomicDec(&bits[8], 4);
  int before = to[9], assumed;
  do {
    assumed = before;
    before = atomicCAS(&to[9], assumed, assumed + value);
  } while (before != assumed);
}

__global__ void OtherAtomics(float* floats, double* doubles,
                             unsigned long long* longs, unsigned* turns) {
  atomicAdd(floats, 1);  // an int becomes a float
  atomicAdd_block(doubles, 0.5);
  atomicAdd(longs, 1ull << 33);
  atomicMax(&longs[1], 7ull + threadIdx.x);
  if (threadIdx.x == 0) {
    floats[1] = atomicExch(&floats[2], 2.5f);
    turns[0] = atomicExch(&turns[1], 9u);
    turns[2] = atomicCAS(&turns[1], 8u, 1u);
  }
}

__global__ void __launch_bounds__(256) Reverse(float* out, const float* in) {
  extern __shared__ float numbers[];
  volatile float* const doubled = numbers + blockDim.x;
  const int t = threadIdx.x, last = blockDim.x - 1;
  numbers[t] = __ldg(&in[blockIdx.x * blockDim.x + t]);
  doubled[t] = 2 * numbers[t];
  assert(t <= last);
  __syncthreads();
  out[blockIdx.x * blockDim.x + t] = numbers[last - t] + doubled[last - t];
  if (out == nullptr) printf("%d %lld\n", t, clock64());
}

__forceinline__ __device__ float Sum(const float* from, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += from[i];
  return sum;
}

__noinline__ __device__ int Last(int count) { return count - 1; }

__global__ void SumOfLastBlock(float* out, const float* in, float* partial) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = Sum(in + blockIdx.x * 32, 32);
    __threadfence();
    const unsigned before = atomicInc(&blocks_done, gridDim.x - 1);
    last = before == static_cast<unsigned>(Last(gridDim.x));
  }
  __syncthreads();
  if (last && threadIdx.x == 1) *out = factor * Sum(partial, gridDim.x);
}

__global__ void AddPairs(float2* out, const float4* __restrict__ in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4 v = in[i];
  const int4 order = make_int4(1, 0, 3, 2);
  const float sums[] = {v.x + v.y, v.z + v.w};
  out[i] = order.x == 1 ? make_float2(sums[0], sums[1]) : make_float2(0, 0);
}

__global__ void MathResults(double* out, int* count) {
  int n = 0;
  const auto write = [&](double result) { out[n++] = result; };
  const float x = 2;
  write(max(3.0, 2.5f));
  write(max(-1, 2u) == ~0u);
  write(min(1ll << 40, 7ll));
  write(min(NAN, 3.f));
  write(max(3.f, NAN));
  write(fmaxf(x, 3.5f));
  write(rsqrtf(4 * x * x));
  write(__expf(0));
  write(__logf(1));
  write(__fdividef(x, 4));
  write(__fmaf_rn(x, x, 1));
  write(__fadd_rn(x, x) + __fmul_rn(x, x) + __fsqrt_rn(4) + __frcp_rn(x));
  write(__saturatef(1.5f) + __saturatef(-1) + __saturatef(0.25f));
  write(__popc(0xf0f0u) + __popcll(~0ull));
  write(__ffs(0) + __ffs(8) + __ffsll(1ll << 40));
  write(__clz(0) + __clz(1) + __clzll(1));
  write(__brev(1u) == 0x80000000u && __brevll(2) == 1ull << 62);
  write(__byte_perm(0x33221100u, 0x77665544u, 0x0617u) == 0x00661177u);
  write(__funnelshift_l(0x80000000u, 1, 1));
  write(__mulhi(1 << 30, -8) + static_cast<double>(__umulhi(~0u, 2)));
  write(__float_as_int(1.f) == 0x3f800000);
  write(__int_as_float(__float_as_int(-2.5f)));
  write(__uint_as_float(__float_as_uint(3.25f)));
  write(__longlong_as_double(__double_as_longlong(0.1)) == 0.1);
  write(__float2int_rn(2.5f) + __float2int_rz(-2.5f) + __float2int_rd(-2.5f) +
        __float2int_ru(2.5f));
  write(__float2int_rn(1e20f) == 2147483647 && __float2uint_rz(-3) == 0);
  write(__int2float_rn(16777217));
  write(FLT_MAX > 1e38f);
  write(isnan(NAN) && !isinf(x));
  *count = n;
}

}  // namespace d2l::kernels::cuda
