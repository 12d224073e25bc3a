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

std::int64_t RandomBlocks(DType dtype, std::int64_t numel) {
  return dtype == DType::kFloat64 ? RandomBlocks<double>(numel)
                                  : RandomBlocks<float>(numel);
}

}  // namespace d2l::kernels
