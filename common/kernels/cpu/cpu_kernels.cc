// The CPU kernels: each family chooses its loop when the operation is
// enqueued, so that the worker calls one function on raw pointers.

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/kernels/cpu/enqueue.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels {
namespace {

template <auto kEnqueue, typename Args>
std::uint64_t On(Stream& stream, const OpLabel& label, const Args& args) {
  return kEnqueue(static_cast<CpuStream&>(stream), label, args);
}

constexpr Kernels kCpuKernels = {
    On<cpu::EnqueueFill>,   On<cpu::EnqueueArange>, On<cpu::EnqueueRandom>,
    On<cpu::EnqueueCopy>,   On<cpu::EnqueueUnary>,  On<cpu::EnqueueBinary>,
    On<cpu::EnqueueWhere>,  On<cpu::EnqueueReduce>, On<cpu::EnqueueSoftmax>,
    On<cpu::EnqueueMatMul>, On<cpu::EnqueueCat>,    On<cpu::EnqueueIndex>,
};

}  // namespace

const Kernels& CpuKernels() { return kCpuKernels; }

}  // namespace d2l::kernels
