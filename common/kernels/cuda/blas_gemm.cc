#include "common/kernels/cuda/blas_gemm.h"

#include <cublas_v2.h>

#include <cstdint>

#include "common/device/cuda/cuda_blas.h"
#include "common/kernels/cuda/gemm_call.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// The sizes as 64 bits (cuBLAS 12): a product of two long vectors has a k that
// does not fit 32.

void Gemm(cublasHandle_t handle, cublasOperation_t first,
          cublasOperation_t second, const GemmCall& call, float) {
  const float one = 1, zero = 0;
  const auto* const a = static_cast<const float*>(call.first);
  const auto* const b = static_cast<const float*>(call.second);
  auto* const c = static_cast<float*>(call.c);
  CheckBlas(call.batch == 1
                ? cublasSgemm_64(handle, first, second, call.m, call.n, call.k,
                                 &one, a, call.ld_first, b, call.ld_second,
                                 &zero, c, call.ld_c)
                : cublasSgemmStridedBatched_64(
                      handle, first, second, call.m, call.n, call.k, &one, a,
                      call.ld_first, call.stride_first, b, call.ld_second,
                      call.stride_second, &zero, c, call.ld_c, call.stride_c,
                      call.batch));
}

void Gemm(cublasHandle_t handle, cublasOperation_t first,
          cublasOperation_t second, const GemmCall& call, double) {
  const double one = 1, zero = 0;
  const auto* const a = static_cast<const double*>(call.first);
  const auto* const b = static_cast<const double*>(call.second);
  auto* const c = static_cast<double*>(call.c);
  CheckBlas(call.batch == 1
                ? cublasDgemm_64(handle, first, second, call.m, call.n, call.k,
                                 &one, a, call.ld_first, b, call.ld_second,
                                 &zero, c, call.ld_c)
                : cublasDgemmStridedBatched_64(
                      handle, first, second, call.m, call.n, call.k, &one, a,
                      call.ld_first, call.stride_first, b, call.ld_second,
                      call.stride_second, &zero, c, call.ld_c, call.stride_c,
                      call.batch));
}

}  // namespace

void LaunchBlasGemm(const CudaLaunch& launch, DType dtype,
                    const GemmCall& call) {
  const auto operation = [](bool transpose) {
    return transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  const cublasOperation_t first = operation(call.transpose_first);
  const cublasOperation_t second = operation(call.transpose_second);
  const cublasHandle_t handle = BlasOf(launch);
  if (dtype == DType::kFloat64) {
    Gemm(handle, first, second, call, double{});
  } else {
    Gemm(handle, first, second, call, float{});
  }
}

}  // namespace d2l::kernels::cuda
