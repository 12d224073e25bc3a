// For tests: what BLAS computes, in the words of its manual, column by column.

#ifndef D2L_COMMON_KERNELS_CUDA_REFERENCE_GEMM_H_
#define D2L_COMMON_KERNELS_CUDA_REFERENCE_GEMM_H_

#include <cstdint>

#include "common/kernels/cuda/gemm_call.h"

namespace d2l::kernels::cuda {

template <typename T>
void ReferenceGemm(const GemmCall& call) {
  const auto* const first = static_cast<const T*>(call.first);
  const auto* const second = static_cast<const T*>(call.second);
  auto* const c = static_cast<T*>(call.c);
  const auto element = [](const T* x, bool transpose, std::int64_t ld,
                          std::int64_t i, std::int64_t j) {
    return transpose ? x[j + i * ld] : x[i + j * ld];
  };
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t j = 0; j < call.n; ++j) {
      for (std::int64_t i = 0; i < call.m; ++i) {
        T sum = 0;
        for (std::int64_t l = 0; l < call.k; ++l) {
          sum += element(first + b * call.stride_first, call.transpose_first,
                         call.ld_first, i, l) *
                 element(second + b * call.stride_second, call.transpose_second,
                         call.ld_second, l, j);
        }
        T& out = c[b * call.stride_c + i + j * call.ld_c];
        out = call.accumulate ? sum + out : sum;
      }
    }
  }
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_REFERENCE_GEMM_H_
