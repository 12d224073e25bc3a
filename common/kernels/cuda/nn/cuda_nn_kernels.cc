// The CUDA back end's table of NnKernels.

#include <cstdint>

#include "common/device/cuda/cuda_stream.h"
#include "common/device/op_label.h"
#include "common/device/storage.h"
#include "common/device/stream.h"
#include "common/kernels/cuda/nn/convolution.h"
#include "common/kernels/cuda/nn/launches.h"
#include "common/kernels/cuda/on_stream.h"
#include "common/kernels/nn_kernels.h"

namespace d2l::kernels {
namespace {

using cuda::On;
using cuda::OnWithScratch;

std::uint64_t Conv2d(Stream& stream, const OpLabel& label,
                     const Conv2dArgs& args) {
  const StorageRef scratch =
      cuda::AllocateScratch(stream, cuda::Conv2dScratchBytes(args));
  return static_cast<CudaStream&>(stream).Launch(
      label, [&](const CudaLaunch& to) {
        cuda::LaunchConv2d(to, args, scratch ? scratch->data() : nullptr);
      });
}

std::uint64_t BatchNormStatistics(Stream& stream, const OpLabel& label,
                                  const BatchNormStatisticsArgs& args) {
  return OnWithScratch<cuda::LaunchBatchNormStatistics>(
      stream, label, args, cuda::BatchNormScratchBytes(args));
}

std::uint64_t BatchNormSums(Stream& stream, const OpLabel& label,
                            const BatchNormSumsArgs& args) {
  return OnWithScratch<cuda::LaunchBatchNormSums>(
      stream, label, args, cuda::BatchNormScratchBytes(args));
}

std::uint64_t IndexAdd(Stream& stream, const OpLabel& label,
                       const IndexAddArgs& args) {
  return OnWithScratch<cuda::LaunchIndexAdd>(stream, label, args,
                                             cuda::IndexAddScratchBytes(args));
}

constexpr NnKernels kCudaNnKernels = {
    Conv2d,
    On<cuda::LaunchAvgPool2d>,
    On<cuda::LaunchAvgPool2dGradient>,
    On<cuda::LaunchMaxPool2d>,
    On<cuda::LaunchMaxPool2dGradient>,
    BatchNormStatistics,
    On<cuda::LaunchBatchNorm>,
    BatchNormSums,
    On<cuda::LaunchBatchNormInputGradient>,
    On<cuda::LaunchCrossEntropy>,
    On<cuda::LaunchCrossEntropyGradient>,
    IndexAdd,
    On<cuda::LaunchAxpby>,
};

}  // namespace

const NnKernels& CudaNnKernels() { return kCudaNnKernels; }

}  // namespace d2l::kernels
