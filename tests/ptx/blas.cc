// The functions of cuBLAS that the project calls, with checks of their
// arguments, in place of the library.

#include <cublas_v2.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/device/cuda/blas/blas_library.h"
#include "tests/ptx/report.h"
#include "tests/ptx/runtime.h"

namespace d2l::ptx {
namespace {

struct Handle {
  int gpu = 0;
  cudaStream_t stream = nullptr;
  bool has_workspace = false;
};
Handle& Of(cublasHandle_t handle) { return *reinterpret_cast<Handle*>(handle); }

cublasStatus_t Wrong(const std::string& what) {
  Report("cuBLAS is called wrongly: " + what);
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t Create(cublasHandle_t* handle) {
  auto* const made = new Handle;
  made->gpu = CurrentGpu();
  *handle = reinterpret_cast<cublasHandle_t>(made);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t Destroy(cublasHandle_t handle) {
  if (Of(handle).gpu != CurrentGpu()) {
    Wrong("a handle destroyed with another current device");
  }
  delete &Of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t SetStream(cublasHandle_t handle, cudaStream_t stream) {
  if (GpuOf(stream) != Of(handle).gpu) return Wrong("another device's stream");
  Of(handle).stream = stream;
  Of(handle).has_workspace = false;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t SetWorkspace(cublasHandle_t handle, void* data,
                            std::size_t bytes) {
  if (DataAt(data, bytes) == nullptr) {
    return Wrong("a workspace that is no allocation");
  }
  if (reinterpret_cast<std::uintptr_t>(data) % 256 != 0) {
    return Wrong("a workspace that is not aligned to 256 bytes");
  }
  Of(handle).has_workspace = true;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t SetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* StatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE
             ? "CUBLAS_STATUS_INVALID_VALUE"
             : "CUBLAS_STATUS_EXECUTION_FAILED";
}
const char* StatusString(cublasStatus_t) { return "see the findings"; }

// A matrix by columns, of a batch of them.
template <typename T>
struct Matrix {
  T* data;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t leading;  // between columns
  std::int64_t stride;   // between matrices

  // From the first element to the last.
  std::size_t Bytes(std::int64_t batch) const {
    if (rows == 0 || columns == 0 || batch == 0) return 0;
    return sizeof(T) * static_cast<std::size_t>((batch - 1) * stride +
                                                (columns - 1) * leading + rows);
  }
  std::string Problem(std::int64_t batch) const {
    if (rows < 0 || columns < 0) return "a negative size";
    if (leading < std::max<std::int64_t>(1, rows)) {
      return "a leading dimension of " + std::to_string(leading) + " for " +
             std::to_string(rows) + " rows";
    }
    if (reinterpret_cast<std::uintptr_t>(data) % sizeof(T) != 0) {
      return "a misaligned matrix";
    }
    if (Bytes(batch) > 0 && DataAt(data, Bytes(batch)) == nullptr) {
      return "a matrix of " + std::to_string(Bytes(batch)) +
             " bytes that is not all in an allocation";
    }
    return "";
  }
  // Of the `item`-th matrix, or of its transposition.
  T& At(std::int64_t item, std::int64_t row, std::int64_t column,
        bool transposed) const {
    if (transposed) std::swap(row, column);
    return data[item * stride + column * leading + row];
  }
};

// Eight sums that are added at the end: a library's order is not the simple
// one.
template <typename T>
T Dot(const std::vector<T>& a, const std::vector<T>& b) {
  constexpr std::size_t kChains = 8;
  T sums[kChains] = {};
  for (std::size_t i = 0; i < a.size(); ++i) {
    sums[i % kChains] = std::fma(a[i], b[i], sums[i % kChains]);
  }
  for (std::size_t step = kChains / 2; step > 0; step /= 2) {
    for (std::size_t i = 0; i < step; ++i) sums[i] += sums[i + step];
  }
  return sums[0];
}

template <typename T>
cublasStatus_t BatchedGemm(cublasHandle_t handle, cublasOperation_t op_a,
                           cublasOperation_t op_b, std::int64_t m,
                           std::int64_t n, std::int64_t k, const T* alpha,
                           const T* a, std::int64_t lda, long long stride_a,
                           const T* b, std::int64_t ldb, long long stride_b,
                           const T* beta, T* c, std::int64_t ldc,
                           long long stride_c, std::int64_t batch) {
  const Handle& of = Of(handle);
  if (of.gpu != CurrentGpu()) return Wrong("another device's handle");
  if (IsCaptured(of.stream) && !of.has_workspace) {
    return Wrong("a captured product without a workspace");
  }
  const bool transpose_a = op_a != CUBLAS_OP_N;
  const bool transpose_b = op_b != CUBLAS_OP_N;
  const Matrix<const T> first = {a, transpose_a ? k : m, transpose_a ? m : k,
                                 lda, stride_a};
  const Matrix<const T> second = {b, transpose_b ? n : k, transpose_b ? k : n,
                                  ldb, stride_b};
  const Matrix<T> result = {c, m, n, ldc, stride_c};
  for (const std::string& problem :
       {first.Problem(batch), second.Problem(batch), result.Problem(batch)}) {
    if (!problem.empty()) return Wrong(problem);
  }
  const auto product = [=, alpha = *alpha, beta = *beta] {
    std::vector<T> row(static_cast<std::size_t>(k)), column(row.size());
    for (std::int64_t item = 0; item < batch; ++item) {
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t l = 0; l < k; ++l) {
          row[static_cast<std::size_t>(l)] = first.At(item, i, l, transpose_a);
        }
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t l = 0; l < k; ++l) {
            column[static_cast<std::size_t>(l)] =
                second.At(item, l, j, transpose_b);
          }
          T& to = result.At(item, i, j, false);
          const T made = alpha * Dot(row, column);
          to = beta == 0 ? made : made + beta * to;
        }
      }
    }
  };
  return Enqueue(of.stream, product) == 0 ? CUBLAS_STATUS_SUCCESS
                                          : CUBLAS_STATUS_EXECUTION_FAILED;
}

template <typename T>
cublasStatus_t Gemm(cublasHandle_t handle, cublasOperation_t op_a,
                    cublasOperation_t op_b, std::int64_t m, std::int64_t n,
                    std::int64_t k, const T* alpha, const T* a,
                    std::int64_t lda, const T* b, std::int64_t ldb,
                    const T* beta, T* c, std::int64_t ldc) {
  return BatchedGemm<T>(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb,
                        0, beta, c, ldc, 0, 1);
}

// Replaces the library when the program starts.
[[maybe_unused]] const bool replaced = [] {
  static const BlasLibrary& blas = *new BlasLibrary{Create,
                                                    Destroy,
                                                    SetStream,
                                                    SetWorkspace,
                                                    SetMathMode,
                                                    StatusName,
                                                    StatusString,
                                                    Gemm<float>,
                                                    Gemm<double>,
                                                    BatchedGemm<float>,
                                                    BatchedGemm<double>};
  ReplaceBlasForTesting(&blas);
  return true;
}();

}  // namespace
}  // namespace d2l::ptx
