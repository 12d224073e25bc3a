#include <cublas_v2.h>

#include <cstdint>

#include "common/device/cuda/blas/blas_library.h"
#include "common/device/cuda/blas/cuda_blas.h"
#include "common/kernels/cuda/index/gemm_call.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/tf32.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

cublasOperation_t Operation(bool transpose) {
  return transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
}

// gemm and batched are cuBLAS's functions for T. They take the sizes as 64
// bits: a product of two long vectors has a k that does not fit 32.
template <typename T, typename Gemm, typename Batched>
void Launch(cublasHandle_t handle, const GemmCall& call, Gemm gemm,
            Batched batched) {
  const cublasOperation_t first = Operation(call.transpose_first);
  const cublasOperation_t second = Operation(call.transpose_second);
  const T one = 1, beta = call.accumulate ? 1 : 0;
  const auto* const a = static_cast<const T*>(call.first);
  const auto* const b = static_cast<const T*>(call.second);
  auto* const c = static_cast<T*>(call.c);
  CheckBlas(call.batch == 1
                ? gemm(handle, first, second, call.m, call.n, call.k, &one, a,
                       call.ld_first, b, call.ld_second, &beta, c, call.ld_c)
                : batched(handle, first, second, call.m, call.n, call.k, &one,
                          a, call.ld_first, call.stride_first, b,
                          call.ld_second, call.stride_second, &beta, c,
                          call.ld_c, call.stride_c, call.batch));
}

}  // namespace

void LaunchBlasGemm(const CudaLaunch& launch, DType dtype,
                    const GemmCall& call) {
  // The second adds up the parts of a long sum.
  d2l::internal::kernels_launched += 2;
  d2l::internal::long_kernel_launched = true;
  const BlasLibrary& blas = Blas();
  const cublasHandle_t handle = BlasOf(launch);
  if (dtype == DType::kFloat64) {
    Launch<double>(handle, call, blas.dgemm, blas.dgemm_batched);
    return;
  }
  CheckBlas(blas.set_math_mode(
      handle, AllowTf32() ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
  Launch<float>(handle, call, blas.sgemm, blas.sgemm_batched);
}

}  // namespace d2l::kernels::cuda
