// Products that are over before cuBLAS has launched them: see IsSmallProduct.

#ifndef D2L_COMMON_KERNELS_CUDA_SMALL_PRODUCT_H_
#define D2L_COMMON_KERNELS_CUDA_SMALL_PRODUCT_H_

#include "common/kernels/cuda/launch.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cuda {

// Right for any sizes; the products of an element of c are added up from the
// first to the last, each with one rounding.
void LaunchSmallProduct(const Launch& launch, const MatMulArgs& args);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_SMALL_PRODUCT_H_
