// The kernels of neural networks on a GPU. What they compute is in
// nn_kernels.h; how they are launched in launch.h. Scratch memory is of
// `…ScratchBytes` bytes, and null if these are 0.

#ifndef D2L_COMMON_KERNELS_CUDA_NN_LAUNCHES_H_
#define D2L_COMMON_KERNELS_CUDA_NN_LAUNCHES_H_

#include <cstddef>
#include <cstdint>

#include "common/kernels/cuda/launch.h"
#include "common/kernels/nn_kernels.h"

namespace d2l::kernels::cuda {

// ---- Of a convolution. `patches` is a matrix of what the windows see, in
// `channels` images each of `batch`: its rows are (channels, kernel_height,
// kernel_width), its columns (batch, out_height, out_width). x is (batch,
// channels, height, width).

struct PatchesArgs {
  DType dtype;
  std::int64_t batch, channels;
  Window2d window;
};
void LaunchPatches(const Launch& launch, const PatchesArgs& args, void* patches,
                   const void* x);
// The reverse: each element of x is the sum of its places in the patches.
void LaunchAddPatches(const Launch& launch, const PatchesArgs& args, void* x,
                      const void* patches);

// ---- Rows of the table.

void LaunchAvgPool2d(const Launch& launch, const AvgPool2dArgs& args);
void LaunchAvgPool2dGradient(const Launch& launch,
                             const AvgPool2dGradientArgs& args);
void LaunchMaxPool2d(const Launch& launch, const MaxPool2dArgs& args);
void LaunchMaxPool2dGradient(const Launch& launch,
                             const MaxPool2dGradientArgs& args);

std::size_t BatchNormScratchBytes(const BatchNormStatisticsArgs& args);
std::size_t BatchNormScratchBytes(const BatchNormSumsArgs& args);
void LaunchBatchNormStatistics(const Launch& launch,
                               const BatchNormStatisticsArgs& args,
                               void* scratch);
void LaunchBatchNorm(const Launch& launch, const BatchNormArgs& args);
void LaunchBatchNormSums(const Launch& launch, const BatchNormSumsArgs& args,
                         void* scratch);
void LaunchBatchNormInputGradient(const Launch& launch,
                                  const BatchNormInputGradientArgs& args);

void LaunchCrossEntropy(const Launch& launch, const CrossEntropyArgs& args);
void LaunchCrossEntropyGradient(const Launch& launch,
                                const CrossEntropyGradientArgs& args);

std::size_t IndexAddScratchBytes(const IndexAddArgs& args);
void LaunchIndexAdd(const Launch& launch, const IndexAddArgs& args,
                    void* scratch);
void LaunchAxpby(const Launch& launch, const AxpbyArgs& args);

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_NN_LAUNCHES_H_
