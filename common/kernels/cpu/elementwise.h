// The element-wise families on the CPU: see kernels.h for what they do.

#ifndef D2L_COMMON_KERNELS_CPU_ELEMENTWISE_H_
#define D2L_COMMON_KERNELS_CPU_ELEMENTWISE_H_

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/op_label.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cpu {

std::uint64_t EnqueueFill(CpuStream& stream, const OpLabel& label,
                          const FillArgs& args);
std::uint64_t EnqueueArange(CpuStream& stream, const OpLabel& label,
                            const ArangeArgs& args);
std::uint64_t EnqueueCopy(CpuStream& stream, const OpLabel& label,
                          const CopyArgs& args);
std::uint64_t EnqueueUnary(CpuStream& stream, const OpLabel& label,
                           const UnaryArgs& args);
std::uint64_t EnqueueBinary(CpuStream& stream, const OpLabel& label,
                            const BinaryArgs& args);
std::uint64_t EnqueueWhere(CpuStream& stream, const OpLabel& label,
                           const WhereArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_ELEMENTWISE_H_
