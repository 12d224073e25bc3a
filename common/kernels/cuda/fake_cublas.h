// A cuBLAS for tests without a GPU: a library that computes at once, on the
// CPU.
//
//   auto* const fake = reinterpret_cast<FakeBlas*>(BlasOf(launch));
//   EXPECT_EQ(fake->math_mode, CUBLAS_DEFAULT_MATH);
//
// It is loaded as cuBLAS is: see blas_gemm_test in BUILD. What it makes as a
// handle is this.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_CUBLAS_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_CUBLAS_H_

#include <cublas_v2.h>

#include <cstddef>

namespace d2l::kernels::cuda {

struct FakeBlas {
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  cudaStream_t stream = nullptr;
  std::size_t workspace_bytes = 0;
  int products = 0;
  int batches = 0;  // of these products
  // What the next product returns.
  cublasStatus_t next = CUBLAS_STATUS_SUCCESS;
};

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_CUBLAS_H_
