// cuBLAS on a CudaStream.
//
//   stream.Launch(label, [=](const CudaLaunch& to) {
//     CheckBlas(Blas().sgemm(BlasOf(to), …));
//   });
//
// Each stream has a handle and a workspace of its own, made when they are first
// needed, so products on one stream always find the same workspace and give the
// same bits.

#ifndef D2L_COMMON_DEVICE_CUDA_BLAS_CUDA_BLAS_H_
#define D2L_COMMON_DEVICE_CUDA_BLAS_CUDA_BLAS_H_

#include <cublas_v2.h>

#include "common/device/cuda/stream/cuda_stream.h"

namespace d2l {

// The handle that belongs to the stream. Use it only within the launch, which
// excludes other threads. Throws std::runtime_error if cuBLAS is not found (see
// LoadBlas) or cannot make a handle.
cublasHandle_t BlasOf(const CudaLaunch& launch);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_BLAS_CUDA_BLAS_H_
