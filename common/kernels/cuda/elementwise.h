// The element-wise families on a GPU. What they compute is in kernels.h; how
// they are launched in launch.h.

#ifndef D2L_COMMON_KERNELS_CUDA_ELEMENTWISE_H_
#define D2L_COMMON_KERNELS_CUDA_ELEMENTWISE_H_

#include "common/kernels/cuda/launch.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cuda {

void LaunchFill(const Launch& launch, const FillArgs& args);
void LaunchArange(const Launch& launch, const ArangeArgs& args);
void LaunchCopy(const Launch& launch, const CopyArgs& args);
void LaunchUnary(const Launch& launch, const UnaryArgs& args);
void LaunchBinary(const Launch& launch, const BinaryArgs& args);
// args.a to the power of `exponent`, if that is 0, 1, 2, 3, or, of
// floating-point numbers, 0.5 or -1. Returns whether it was one of these.
bool LaunchPower(const Launch& launch, double exponent, const BinaryArgs& args);
void LaunchWhere(const Launch& launch, const WhereArgs& args);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_ELEMENTWISE_H_
