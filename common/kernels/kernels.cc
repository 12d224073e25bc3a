#include "common/kernels/kernels.h"

#include <cstdint>

#include "common/kernels/nn_kernels.h"
#include "common/kernels/philox.h"

namespace d2l::kernels {

const Kernels& GetKernels(DeviceType type) {
  return type == DeviceType::kCpu ? CpuKernels() : CudaKernels();
}

const NnKernels& GetNnKernels(DeviceType type) {
  return type == DeviceType::kCpu ? CpuNnKernels() : CudaNnKernels();
}

std::int64_t RandomBlocks(RandomOp op, DType dtype, std::int64_t numel,
                          std::uint64_t range) {
  // What takes two words of a block for an element, like a double.
  const bool wide = op == RandomOp::kInteger ? range > std::uint64_t{1} << 32
                                             : dtype == DType::kFloat64;
  return wide ? RandomBlocks<double>(numel) : RandomBlocks<float>(numel);
}

}  // namespace d2l::kernels
