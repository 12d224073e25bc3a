// Random numbers on a GPU: the CPU's bits.

#ifndef D2L_COMMON_KERNELS_CUDA_RANDOM_H_
#define D2L_COMMON_KERNELS_CUDA_RANDOM_H_

#include "common/kernels/cuda/launch.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cuda {

void LaunchRandom(const Launch& launch, const RandomArgs& args);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_RANDOM_H_
