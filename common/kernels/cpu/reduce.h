// Reductions and softmax on the CPU: see kernels.h for what they do.

#ifndef D2L_COMMON_KERNELS_CPU_REDUCE_H_
#define D2L_COMMON_KERNELS_CPU_REDUCE_H_

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/op_label.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cpu {

std::uint64_t EnqueueReduce(CpuStream& stream, const OpLabel& label,
                            const ReduceArgs& args);
std::uint64_t EnqueueSoftmax(CpuStream& stream, const OpLabel& label,
                             const SoftmaxArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_REDUCE_H_
