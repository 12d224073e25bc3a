// The CPU's table of NnKernels.

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/kernels/cpu/nn/convolution.h"
#include "common/kernels/cpu/nn/enqueue.h"
#include "common/kernels/nn_kernels.h"

namespace d2l::kernels {
namespace {

template <auto kEnqueue, typename Args>
std::uint64_t On(Stream& stream, const OpLabel& label, const Args& args) {
  return kEnqueue(static_cast<CpuStream&>(stream), label, args);
}

constexpr NnKernels kCpuNnKernels = {
    On<cpu::EnqueueConv2d>,
    On<cpu::EnqueueAvgPool2d>,
    On<cpu::EnqueueAvgPool2dGradient>,
    On<cpu::EnqueueMaxPool2d>,
    On<cpu::EnqueueMaxPool2dGradient>,
    On<cpu::EnqueueBatchNormStatistics>,
    On<cpu::EnqueueBatchNorm>,
    On<cpu::EnqueueBatchNormSums>,
    On<cpu::EnqueueBatchNormInputGradient>,
    On<cpu::EnqueueCrossEntropy>,
    On<cpu::EnqueueCrossEntropyGradient>,
    On<cpu::EnqueueIndexAdd>,
    On<cpu::EnqueueAxpby>,
};

}  // namespace

const NnKernels& CpuNnKernels() { return kCpuNnKernels; }

}  // namespace d2l::kernels
