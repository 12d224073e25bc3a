// The CUDA kernels: each family launches on the stream what its file launches.

#include <cstdint>

#include "common/device/cuda/cuda_stream.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/kernels/cuda/concat_gather.h"
#include "common/kernels/cuda/elementwise.h"
#include "common/kernels/cuda/matmul.h"
#include "common/kernels/cuda/on_stream.h"
#include "common/kernels/cuda/random.h"
#include "common/kernels/cuda/reduce.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels {
namespace {

using cuda::On;

std::uint64_t Reduce(Stream& stream, const OpLabel& label,
                     const ReduceArgs& args) {
  return cuda::OnWithScratch<cuda::LaunchReduce>(
      stream, label, args, cuda::ReduceScratchBytes(args));
}

std::uint64_t MatMul(Stream& stream, const OpLabel& label,
                     const MatMulArgs& args) {
  return static_cast<CudaStream&>(stream).Launch(
      label, [&args](const CudaLaunch& to) { cuda::LaunchMatMul(to, args); });
}

constexpr Kernels kCudaKernels = {
    On<cuda::LaunchFill>,    On<cuda::LaunchArange>,
    On<cuda::LaunchRandom>,  On<cuda::LaunchCopy>,
    On<cuda::LaunchUnary>,   On<cuda::LaunchBinary>,
    On<cuda::LaunchWhere>,   Reduce,
    On<cuda::LaunchSoftmax>, MatMul,
    On<cuda::LaunchCat>,     On<cuda::LaunchIndex>,
};

}  // namespace

const Kernels& CudaKernels() { return kCudaKernels; }

}  // namespace d2l::kernels
