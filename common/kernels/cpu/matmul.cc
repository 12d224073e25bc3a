#include "common/kernels/cpu/matmul.h"

#include <cblas.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "absl/strings/str_format.h"

namespace d2l::kernels::cpu {
namespace {

int AsInt(std::int64_t n) {
  if (n > std::numeric_limits<int>::max()) {
    throw std::invalid_argument(absl::StrFormat(
        "a side of %d elements is more than the BLAS library can count", n));
  }
  return static_cast<int>(n);
}

void TurnOffLibraryThreads() {
  static const bool done = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

void MatMul(const MatMulArgs& args) {
  TurnOffLibraryThreads();
  if (args.m == 0 || args.n == 0) return;
  const auto a_order = args.transpose_a ? CblasTrans : CblasNoTrans;
  const auto b_order = args.transpose_b ? CblasTrans : CblasNoTrans;
  const int m = AsInt(args.m), n = AsInt(args.n), k = AsInt(args.k);
  // A leading dimension must be at least 1, even of an empty matrix.
  const int lda = std::max(1, AsInt(args.lda));
  const int ldb = std::max(1, AsInt(args.ldb));
  const int ldc = std::max(1, AsInt(args.ldc));
  if (args.dtype == DType::kFloat64) {
    cblas_dgemm(CblasRowMajor, a_order, b_order, m, n, k, 1.0,
                static_cast<const double*>(args.a), lda,
                static_cast<const double*>(args.b), ldb, 0.0,
                static_cast<double*>(args.c), ldc);
  } else {
    cblas_sgemm(CblasRowMajor, a_order, b_order, m, n, k, 1.0f,
                static_cast<const float*>(args.a), lda,
                static_cast<const float*>(args.b), ldb, 0.0f,
                static_cast<float*>(args.c), ldc);
  }
}

}  // namespace d2l::kernels::cpu
