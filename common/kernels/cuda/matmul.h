// Matrix products on a GPU: by cuBLAS, or, if they are small, by a kernel of
// our own (gemm_call.h says which).

#ifndef D2L_COMMON_KERNELS_CUDA_MATMUL_H_
#define D2L_COMMON_KERNELS_CUDA_MATMUL_H_

#include "common/device/cuda/cuda_stream.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cuda {

// Throws std::runtime_error if cuBLAS is needed and not found, or refuses.
void LaunchMatMul(const CudaLaunch& launch, const MatMulArgs& args);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_MATMUL_H_
