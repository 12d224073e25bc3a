// For builds without CUDA.

#include <stdexcept>
#include <vector>

#include "chapters/profiling/ladders/kernel_ladder.h"

namespace d2l::profiling {

std::vector<KernelStep> StepsForGpu() { return {}; }

void EnqueueStep(const KernelStep&, const Tensor&, const Tensor&,
                 const Tensor&) {
  throw std::logic_error("This build has no kernels for a GPU.");
}

}  // namespace d2l::profiling
