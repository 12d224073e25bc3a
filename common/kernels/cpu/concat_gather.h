// Joining and picking elements on the CPU: see kernels.h for what they do.

#ifndef D2L_COMMON_KERNELS_CPU_CONCAT_GATHER_H_
#define D2L_COMMON_KERNELS_CPU_CONCAT_GATHER_H_

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/op_label.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cpu {

std::uint64_t EnqueueCat(CpuStream& stream, const OpLabel& label,
                         const CatArgs& args);
std::uint64_t EnqueueIndex(CpuStream& stream, const OpLabel& label,
                           const IndexArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_CONCAT_GATHER_H_
