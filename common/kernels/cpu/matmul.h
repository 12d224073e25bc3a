// Matrix products on the CPU: OpenBLAS, on the calling thread alone.
//
// A virtual device is one worker with its share of the cores, so the
// library's own threads are turned off before the first product.

#ifndef D2L_COMMON_KERNELS_CPU_MATMUL_H_
#define D2L_COMMON_KERNELS_CPU_MATMUL_H_

#include "common/kernels/kernels.h"

namespace d2l::kernels::cpu {

// Computes the product, synchronously. Any thread. Throws
// std::invalid_argument for a side beyond 2^31 - 1, which CBLAS cannot count.
void MatMul(const MatMulArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_MATMUL_H_
