// The families of kernels on the CPU, each an operation that is enqueued on a
// stream: see kernels.h for what they do, and random.h, gemm.h and
// elementwise_loops.h for the arithmetic.

#ifndef D2L_COMMON_KERNELS_CPU_ENQUEUE_H_
#define D2L_COMMON_KERNELS_CPU_ENQUEUE_H_

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/op_label.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels::cpu {

std::uint64_t EnqueueFill(CpuStream& stream, const OpLabel& label,
                          const FillArgs& args);
std::uint64_t EnqueueArange(CpuStream& stream, const OpLabel& label,
                            const ArangeArgs& args);
std::uint64_t EnqueueRandom(CpuStream& stream, const OpLabel& label,
                            const RandomArgs& args);
std::uint64_t EnqueueCopy(CpuStream& stream, const OpLabel& label,
                          const CopyArgs& args);
std::uint64_t EnqueueUnary(CpuStream& stream, const OpLabel& label,
                           const UnaryArgs& args);
std::uint64_t EnqueueBinary(CpuStream& stream, const OpLabel& label,
                            const BinaryArgs& args);
std::uint64_t EnqueueWhere(CpuStream& stream, const OpLabel& label,
                           const WhereArgs& args);
std::uint64_t EnqueueReduce(CpuStream& stream, const OpLabel& label,
                            const ReduceArgs& args);
std::uint64_t EnqueueSoftmax(CpuStream& stream, const OpLabel& label,
                             const SoftmaxArgs& args);
std::uint64_t EnqueueMatMul(CpuStream& stream, const OpLabel& label,
                            const MatMulArgs& args);
std::uint64_t EnqueueCat(CpuStream& stream, const OpLabel& label,
                         const CatArgs& args);
std::uint64_t EnqueueIndex(CpuStream& stream, const OpLabel& label,
                           const IndexArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_ENQUEUE_H_
