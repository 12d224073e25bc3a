// The kernels of neural networks on the CPU, each an operation that is enqueued
// on a stream: see nn_kernels.h for what they do.

#ifndef D2L_COMMON_KERNELS_CPU_NN_ENQUEUE_H_
#define D2L_COMMON_KERNELS_CPU_NN_ENQUEUE_H_

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/op_label.h"
#include "common/kernels/nn_kernels.h"

namespace d2l::kernels::cpu {

std::uint64_t EnqueueAvgPool2d(CpuStream& stream, const OpLabel& label,
                               const AvgPool2dArgs& args);
std::uint64_t EnqueueAvgPool2dGradient(CpuStream& stream, const OpLabel& label,
                                       const AvgPool2dGradientArgs& args);
std::uint64_t EnqueueMaxPool2d(CpuStream& stream, const OpLabel& label,
                               const MaxPool2dArgs& args);
std::uint64_t EnqueueMaxPool2dGradient(CpuStream& stream, const OpLabel& label,
                                       const MaxPool2dGradientArgs& args);
std::uint64_t EnqueueBatchNormStatistics(CpuStream& stream,
                                         const OpLabel& label,
                                         const BatchNormStatisticsArgs& args);
std::uint64_t EnqueueBatchNorm(CpuStream& stream, const OpLabel& label,
                               const BatchNormArgs& args);
std::uint64_t EnqueueBatchNormSums(CpuStream& stream, const OpLabel& label,
                                   const BatchNormSumsArgs& args);
std::uint64_t EnqueueBatchNormInputGradient(
    CpuStream& stream, const OpLabel& label,
    const BatchNormInputGradientArgs& args);
std::uint64_t EnqueueCrossEntropy(CpuStream& stream, const OpLabel& label,
                                  const CrossEntropyArgs& args);
std::uint64_t EnqueueCrossEntropyGradient(CpuStream& stream,
                                          const OpLabel& label,
                                          const CrossEntropyGradientArgs& args);
std::uint64_t EnqueueIndexAdd(CpuStream& stream, const OpLabel& label,
                              const IndexAddArgs& args);
std::uint64_t EnqueueAxpby(CpuStream& stream, const OpLabel& label,
                           const AxpbyArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_NN_ENQUEUE_H_
