// The CUDA kernels of a binary built without --config=cuda.

#include <stdexcept>

#include "common/kernels/kernels.h"
#include "common/kernels/nn_kernels.h"

namespace d2l::kernels {
namespace {

[[noreturn]] void ThrowNoCuda() {
  throw std::runtime_error(
      "[kernels] this binary has no CUDA kernels; use "
      "--devices=cpu:0,cpu:1");
}

}  // namespace

const Kernels& CudaKernels() { ThrowNoCuda(); }
const NnKernels& CudaNnKernels() { ThrowNoCuda(); }

}  // namespace d2l::kernels
