// Random numbers as an operation of a CPU stream: see RandomArgs in kernels.h.
// The arithmetic is in random.h.

#ifndef D2L_COMMON_KERNELS_CPU_ENQUEUE_RANDOM_H_
#define D2L_COMMON_KERNELS_CPU_ENQUEUE_RANDOM_H_

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/op_label.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cpu {

std::uint64_t EnqueueRandom(CpuStream& stream, const OpLabel& label,
                            const RandomArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_ENQUEUE_RANDOM_H_
