// For tests: a matrix product as the manual of BLAS defines it, column by
// column; each element is a sum in order.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_REFERENCE_GEMM_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_REFERENCE_GEMM_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/kernels/cuda/index/gemm_call.h"

namespace d2l::kernels::cuda {

template <typename T>
void ReferenceGemm(const GemmCall& call) {
  const std::int64_t m = call.m, k = call.k;
  // The first matrix without its transposition: the innermost loop reads it.
  std::vector<T> columns(m * k), sums(m);
  for (std::int64_t b = 0; b < call.batch; ++b) {
    const T* const first =
        static_cast<const T*>(call.first) + b * call.stride_first;
    const T* const second =
        static_cast<const T*>(call.second) + b * call.stride_second;
    for (std::int64_t i = 0; i < m * k; ++i) {
      columns[i] = call.transpose_first ? first[i / m + i % m * call.ld_first]
                                        : first[i % m + i / m * call.ld_first];
    }
    for (std::int64_t j = 0; j < call.n; ++j) {
      std::fill(sums.begin(), sums.end(), T{0});
      for (std::int64_t l = 0; l < k; ++l) {
        const T factor = call.transpose_second ? second[j + l * call.ld_second]
                                               : second[l + j * call.ld_second];
        for (std::int64_t i = 0; i < m; ++i) {
          sums[i] += columns[i + l * m] * factor;
        }
      }
      T* const out =
          static_cast<T*>(call.c) + b * call.stride_c + j * call.ld_c;
      for (std::int64_t i = 0; i < m; ++i) {
        out[i] = call.accumulate ? sums[i] + out[i] : sums[i];
      }
    }
  }
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_REFERENCE_GEMM_H_
