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
    /*batch_norm_statistics=*/nullptr,
    /*batch_norm=*/nullptr,
    /*batch_norm_sums=*/nullptr,
    /*batch_norm_input_gradient=*/nullptr,
    /*cross_entropy=*/nullptr,
    /*cross_entropy_gradient=*/nullptr,
    /*index_add=*/nullptr,
    /*axpby=*/nullptr,
};

}  // namespace

const NnKernels& CpuNnKernels() { return kCpuNnKernels; }

}  // namespace d2l::kernels
