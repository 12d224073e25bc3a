// The CPU's table of NnKernels.

#include "common/kernels/nn_kernels.h"

namespace d2l::kernels {
namespace {

constexpr NnKernels kCpuNnKernels = {};

}  // namespace

const NnKernels& CpuNnKernels() { return kCpuNnKernels; }

}  // namespace d2l::kernels
