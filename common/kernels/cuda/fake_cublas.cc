#include "common/kernels/cuda/fake_cublas.h"

#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/kernels/cuda/gemm_call.h"
#include "common/kernels/cuda/reference_gemm.h"

namespace {

using d2l::kernels::cuda::FakeBlas;
using d2l::kernels::cuda::GemmCall;
using d2l::kernels::cuda::ReferenceGemm;

FakeBlas& Of(cublasHandle_t handle) {
  return *reinterpret_cast<FakeBlas*>(handle);
}

template <typename T>
cublasStatus_t Product(cublasHandle_t handle, const T* alpha, const T* beta,
                       const GemmCall& call) {
  if (*alpha != 1 || *beta != 0) return CUBLAS_STATUS_INVALID_VALUE;
  FakeBlas& blas = Of(handle);
  ++blas.products;
  ReferenceGemm<T>(call);
  return std::exchange(blas.next, CUBLAS_STATUS_SUCCESS);
}

template <typename T>
cublasStatus_t One(cublasHandle_t handle, cublasOperation_t a_is,
                   cublasOperation_t b_is, int64_t m, int64_t n, int64_t k,
                   const T* alpha, const T* a, int64_t lda, const T* b,
                   int64_t ldb, const T* beta, T* c, int64_t ldc) {
  return Product(handle, alpha, beta,
                 {a_is == CUBLAS_OP_T, b_is == CUBLAS_OP_T, m, n, k, a, lda, b,
                  ldb, c, ldc, 1, 0, 0, 0});
}

template <typename T>
cublasStatus_t Several(cublasHandle_t handle, cublasOperation_t a_is,
                       cublasOperation_t b_is, int64_t m, int64_t n, int64_t k,
                       const T* alpha, const T* a, int64_t lda,
                       long long a_stride, const T* b, int64_t ldb,
                       long long b_stride, const T* beta, T* c, int64_t ldc,
                       long long c_stride, int64_t batch) {
  ++Of(handle).batches;
  return Product(handle, alpha, beta,
                 {a_is == CUBLAS_OP_T, b_is == CUBLAS_OP_T, m, n, k, a, lda, b,
                  ldb, c, ldc, batch, a_stride, b_stride, c_stride});
}

}  // namespace

// As cublas_api.h declares them.
extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new FakeBlas);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete &Of(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  Of(handle).stream = stream;
  Of(handle).workspace_bytes = 0;  // as in cuBLAS
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void*,
                                     std::size_t bytes) {
  Of(handle).workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  Of(handle).math_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t) { return "FAKE_STATUS"; }
const char* cublasGetStatusString(cublasStatus_t) { return "as was asked for"; }

cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t a_is,
                                 cublasOperation_t b_is, int64_t m, int64_t n,
                                 int64_t k, const float* alpha, const float* a,
                                 int64_t lda, const float* b, int64_t ldb,
                                 const float* beta, float* c, int64_t ldc) {
  return One(handle, a_is, b_is, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

cublasStatus_t cublasDgemm_v2_64(cublasHandle_t handle, cublasOperation_t a_is,
                                 cublasOperation_t b_is, int64_t m, int64_t n,
                                 int64_t k, const double* alpha,
                                 const double* a, int64_t lda, const double* b,
                                 int64_t ldb, const double* beta, double* c,
                                 int64_t ldc) {
  return One(handle, a_is, b_is, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

cublasStatus_t cublasSgemmStridedBatched_64(
    cublasHandle_t handle, cublasOperation_t a_is, cublasOperation_t b_is,
    int64_t m, int64_t n, int64_t k, const float* alpha, const float* a,
    int64_t lda, long long a_stride, const float* b, int64_t ldb,
    long long b_stride, const float* beta, float* c, int64_t ldc,
    long long c_stride, int64_t batch) {
  return Several(handle, a_is, b_is, m, n, k, alpha, a, lda, a_stride, b, ldb,
                 b_stride, beta, c, ldc, c_stride, batch);
}

cublasStatus_t cublasDgemmStridedBatched_64(
    cublasHandle_t handle, cublasOperation_t a_is, cublasOperation_t b_is,
    int64_t m, int64_t n, int64_t k, const double* alpha, const double* a,
    int64_t lda, long long a_stride, const double* b, int64_t ldb,
    long long b_stride, const double* beta, double* c, int64_t ldc,
    long long c_stride, int64_t batch) {
  return Several(handle, a_is, b_is, m, n, k, alpha, a, lda, a_stride, b, ldb,
                 b_stride, beta, c, ldc, c_stride, batch);
}

}  // extern "C"
