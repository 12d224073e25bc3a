// What BLAS computes, in the words of its manual, as work of a FakeCuda's
// stream.

#include <cstdint>

#include "common/device/cuda/fake_cuda.h"
#include "common/kernels/cuda/blas_gemm.h"

namespace d2l {

FakeCuda& FakeCudaOfBackend();  // common/device/cuda/fake_backend.cc

namespace kernels::cuda {
namespace {

template <typename T>
void Gemm(const GemmCall& call) {
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
        c[b * call.stride_c + i + j * call.ld_c] = sum;
      }
    }
  }
}

}  // namespace

void LaunchBlasGemm(const CudaLaunch& launch, DType dtype,
                    const GemmCall& call) {
  FakeCudaOfBackend().LaunchKernel(launch.stream, [=] {
    if (dtype == DType::kFloat64) {
      Gemm<double>(call);
    } else {
      Gemm<float>(call);
    }
  });
}

}  // namespace kernels::cuda
}  // namespace d2l
