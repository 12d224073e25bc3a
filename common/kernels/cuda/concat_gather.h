// Joining and picking rows on a GPU.

#ifndef D2L_COMMON_KERNELS_CUDA_CONCAT_GATHER_H_
#define D2L_COMMON_KERNELS_CUDA_CONCAT_GATHER_H_

#include "common/kernels/cuda/launch.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cuda {

void LaunchCat(const Launch& launch, const CatArgs& args);
void LaunchIndex(const Launch& launch, const IndexArgs& args);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_CONCAT_GATHER_H_
