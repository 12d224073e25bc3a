// Convolutions on a GPU, as matrix products of patches (im2col).

#ifndef D2L_COMMON_KERNELS_CUDA_NN_CONVOLUTION_H_
#define D2L_COMMON_KERNELS_CUDA_NN_CONVOLUTION_H_

#include <cstddef>

#include "common/device/cuda/cuda_stream.h"
#include "common/kernels/nn_kernels.h"

namespace d2l::kernels::cuda {

// What a convolution uses beside its operands, at most 64 MB or what one image
// needs: images go through it in groups.
std::size_t Conv2dScratchBytes(const Conv2dArgs& args);

// scratch: of so many bytes. Throws as LaunchMatMul does.
void LaunchConv2d(const CudaLaunch& launch, const Conv2dArgs& args,
                  void* scratch);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_NN_CONVOLUTION_H_
