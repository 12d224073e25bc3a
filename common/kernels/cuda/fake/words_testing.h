// Kernels for words_test.cc that use CUDA's words, and write what they give.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_WORDS_TESTING_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_WORDS_TESTING_H_

#include "common/kernels/cuda/fake/words.h"

namespace d2l::kernels::cuda {

constexpr int kShuffles = 5, kWidths = 5, kVotes = 14, kIntegerAtomics = 10;
constexpr int kMathResults = 64;

// One warp. out[(shuffle, width, lane)], for widths 32, 16, 8, 4, 2.
__global__ void Shuffles(int* out, const int* in);
// One warp. out[(vote, lane)].
__global__ void Votes(unsigned* out, const int* in);
// One warp: the lanes below 12 have a mask of their own.
__global__ void PartsOfAWarp(int* out, const int* in);
// One warp.
__global__ void ActiveLanes(unsigned* out);
__global__ void BarriersThatCount(int* out, const int* in);
// to[i] is changed by the i-th atomic; in[i] is the i-th thread's argument.
__global__ void IntegerAtomics(int* to, const int* in);
__global__ void OtherAtomics(float* floats, double* doubles,
                             unsigned long long* longs, unsigned* turns);
// Reverses the numbers of a block; the launch gives 2 * blockDim.x words of
// dynamic shared memory.
__global__ void Reverse(float* out, const float* in);
// The sum of `in` by the last block that comes, scaled by a __constant__.
__global__ void SumOfLastBlock(float* out, const float* in, float* partial);
__global__ void AddPairs(float2* out, const float4* in, int n);
// One thread. Returns the number of results.
__global__ void MathResults(double* out, int* count);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_WORDS_TESTING_H_
