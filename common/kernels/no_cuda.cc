// The CUDA kernels of a binary built without --config=cuda.

#include <stdexcept>

#include "common/kernels/kernels.h"

namespace d2l::kernels {

const Kernels& CudaKernels() {
  throw std::runtime_error(
      "[kernels] this binary has no CUDA kernels; use "
      "--devices=cpu:0,cpu:1");
}

}  // namespace d2l::kernels
