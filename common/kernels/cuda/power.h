// Powers to an exponent that makes them another operation.

#ifndef D2L_COMMON_KERNELS_CUDA_POWER_H_
#define D2L_COMMON_KERNELS_CUDA_POWER_H_

#include "common/kernels/cuda/launch.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cuda {

// Launches args.a to the power of `exponent`, if that is 0, 1, 2, 3, or, of
// floating-point numbers, 0.5 or -1. Returns whether it was one of these.
bool LaunchPower(const Launch& launch, double exponent, const BinaryArgs& args);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_POWER_H_
