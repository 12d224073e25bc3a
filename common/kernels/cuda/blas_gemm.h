// A product by a library.

#ifndef D2L_COMMON_KERNELS_CUDA_BLAS_GEMM_H_
#define D2L_COMMON_KERNELS_CUDA_BLAS_GEMM_H_

#include "common/device/cuda/stream/cuda_stream.h"
#include "common/kernels/cuda/index/gemm_call.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {

// In blas_gemm.cc by cuBLAS, in emulated_gemm.cc for tests without a GPU.
// Throws std::runtime_error if cuBLAS is not found or refuses.
void LaunchBlasGemm(const CudaLaunch& launch, DType dtype,
                    const GemmCall& call);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_BLAS_GEMM_H_
