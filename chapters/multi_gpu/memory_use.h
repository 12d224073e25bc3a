// The memory that the layers of a network need in a step of training: a formula
// to compare with the allocator's measurement (DataParallel::memory).
//
//   const LayerMemory layers = PredictLayers(net, one_image, /*samples=*/256);
//   net.PredictMemory(0, layers.kept, layers.temporaries, /*momentum=*/true);
//
// The backward pass needs, for each layer: the input of a convolution, a linear
// layer, a maximum or a batch normalisation, for the gradient of its weight or
// its place; the output of a ReLU, which is the next layer's input; the factors
// of a dropout. A value that two layers need is counted once. For a checkpoint
// (nn::Checkpoint) it needs the input.
//
// For the training thread.

#ifndef D2L_CHAPTERS_MULTI_GPU_MEMORY_USE_H_
#define D2L_CHAPTERS_MULTI_GPU_MEMORY_USE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/nn/module.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/tensor/tensor.h"

namespace d2l {

struct LayerMemory {
  std::int64_t kept = 0;
  // The most that a layer's pass takes beyond `kept`: its input and its output,
  // or their gradients, and its parameters' gradient.
  std::int64_t temporaries = 0;
};

// `sample` is a batch of one, on the module's device. It passes through the
// module, one of the course's: a Sequential of layers and Residuals.
LayerMemory PredictLayers(nn::Module& net, const Tensor& sample,
                          std::int64_t samples);

// A table with a line for each use, by kind.
std::string MemoryTable(
    const std::vector<std::pair<std::string, MemoryUse>>& uses);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_MEMORY_USE_H_
