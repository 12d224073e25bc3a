#include "common/kernels/kernels.h"

#include <cstdint>
#include <stdexcept>

#include "common/kernels/philox.h"

namespace d2l::kernels {

Kernels& GetKernels(DeviceType type) {
  if (type != DeviceType::kCpu) {
    throw std::runtime_error(
        "[kernels] this binary has no CUDA kernels; use "
        "--devices=cpu:0,cpu:1");
  }
  return CpuKernels();
}

std::int64_t RandomBlocks(RandomOp op, DType dtype, std::int64_t numel,
                          std::uint64_t range) {
  // What takes two words of a block for an element, like a double.
  const bool wide = op == RandomOp::kInteger ? range > std::uint64_t{1} << 32
                                             : dtype == DType::kFloat64;
  return wide ? RandomBlocks<double>(numel) : RandomBlocks<float>(numel);
}

}  // namespace d2l::kernels
