#include "common/kernels/kernels.h"

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/device.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/philox.h"

namespace d2l::kernels {

#define D2L_ENQUEUE(Args)                                                   \
  std::uint64_t Enqueue(Stream& stream, const OpLabel& label,               \
                        const Args& args) {                                 \
    return stream.device().type() == DeviceType::kCpu                       \
               ? cpu::Enqueue(static_cast<CpuStream&>(stream), label, args) \
               : cuda::Enqueue(stream, label, args);                        \
  }
D2L_FOR_EACH_KERNEL(D2L_ENQUEUE)

std::int64_t RandomBlocks(RandomOp op, DType dtype, std::int64_t numel,
                          std::uint64_t range) {
  // Such an element uses two words of a block, like a double.
  const bool wide = op == RandomOp::kInteger ? range > std::uint64_t{1} << 32
                                             : dtype == DType::kFloat64;
  return wide ? RandomBlocks<double>(numel) : RandomBlocks<float>(numel);
}

}  // namespace d2l::kernels
