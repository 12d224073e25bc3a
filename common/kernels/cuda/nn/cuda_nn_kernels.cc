// The CUDA back end's table of NnKernels.

#include "common/kernels/nn_kernels.h"

namespace d2l::kernels {
namespace {

constexpr NnKernels kCudaNnKernels = {};

}  // namespace

const NnKernels& CudaNnKernels() { return kCudaNnKernels; }

}  // namespace d2l::kernels
