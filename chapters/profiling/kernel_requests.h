// Counts the memory requests of a kernel's warps, without a GPU.
//
//   const WarpLoads loads = LoadsOf(SumRows, 64);
//   loads.sectors / loads.requests;  // 32 sectors a request
//
// Thread-safe.

#ifndef D2L_CHAPTERS_PROFILING_KERNEL_REQUESTS_H_
#define D2L_CHAPTERS_PROFILING_KERNEL_REQUESTS_H_

#include <cstdint>
#include <vector>

#include "common/kernels/cuda/fake/words.h"

namespace d2l::profiling {

// The sums of the columns, or rows, of an (n, n) matrix.
using SumKernel = void (*)(float* sums, const float* x, int n);
__global__ void SumColumns(float* sums, const float* x, int n);
__global__ void SumRows(float* sums, const float* x, int n);

// An element of the matrix: small whole numbers, whose sums are exact.
float Element(int row, int column);

// The loads of the matrix.
struct WarpLoads {
  std::int64_t requests = 0;  // 0 in a build with a sanitizer: not counted
  std::int64_t bytes = 0;     // that the lanes requested
  std::int64_t sectors = 0;   // of 32 bytes, that were touched
  std::vector<std::int64_t> first;  // for DrawSectors
  std::vector<float> sums;
};
WarpLoads LoadsOf(SumKernel kernel, int n);

}  // namespace d2l::profiling

#endif  // D2L_CHAPTERS_PROFILING_KERNEL_REQUESTS_H_
