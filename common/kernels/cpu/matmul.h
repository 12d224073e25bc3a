// Matrix products on the CPU: see MatMulArgs in kernels.h.

#ifndef D2L_COMMON_KERNELS_CPU_MATMUL_H_
#define D2L_COMMON_KERNELS_CPU_MATMUL_H_

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/op_label.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cpu {

std::uint64_t EnqueueMatMul(CpuStream& stream, const OpLabel& label,
                            const MatMulArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_MATMUL_H_
