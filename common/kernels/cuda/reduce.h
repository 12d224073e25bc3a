// Reductions and softmax on a GPU. The order of additions follows from the
// sizes: see reduce_plan.h.

#ifndef D2L_COMMON_KERNELS_CUDA_REDUCE_H_
#define D2L_COMMON_KERNELS_CUDA_REDUCE_H_

#include <cstddef>

#include "common/kernels/cuda/launch.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cuda {

// How much memory of the device LaunchReduce needs besides; 0 for most.
std::size_t ReduceScratchBytes(const ReduceArgs& args);
// scratch: aligned to 16 bytes; in use until the kernels have run.
void LaunchReduce(const Launch& launch, const ReduceArgs& args, void* scratch);

void LaunchSoftmax(const Launch& launch, const SoftmaxArgs& args);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_REDUCE_H_
