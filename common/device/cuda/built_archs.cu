// Only nvcc knows for which GPUs it compiles.

#include <vector>

#include "common/device/cuda/cuda_api.h"

namespace d2l {

std::vector<int> BuiltArchs() { return {__CUDA_ARCH_LIST__}; }

}  // namespace d2l
