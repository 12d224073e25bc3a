// Element-wise operations on the CPU.

#ifndef D2L_COMMON_KERNELS_CPU_ELEMENTWISE_H_
#define D2L_COMMON_KERNELS_CPU_ELEMENTWISE_H_

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/op_label.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cpu {

// Enqueue the operation and return its number. The output may be one of the
// inputs, element for element; otherwise they do not overlap.
std::uint64_t EnqueueUnary(CpuStream& stream, const OpLabel& label,
                           const UnaryArgs& args);
std::uint64_t EnqueueBinary(CpuStream& stream, const OpLabel& label,
                            const BinaryArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_ELEMENTWISE_H_
