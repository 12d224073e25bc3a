// What the layers of a network need memory for in a step of training: a formula
// to compare with what the allocator measures (DataParallel::memory).
//
//   const LayerMemory layers = PredictLayers(net, one_image, /*samples=*/256);
//   net.PredictMemory(0, layers.kept, layers.temporaries, /*momentum=*/true);
//
// The way back needs, of each layer: the input of a convolution, a linear
// layer, a maximum or a batch normalisation, for the gradient of its weight or
// its place; the output of a ReLU, which is the next layer's input; what a
// dropout multiplies with. A value that two layers need is there once. Of a
// checkpoint (nn::Checkpoint) it needs the input.
//
// For the thread that trains.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_MEMORY_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_MEMORY_H_

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
  // What a layer's pass takes besides that is kept then, at its worst, less the
  // kept: its input and its output, or their gradients, and its parameters'.
  std::int64_t temporaries = 0;
};

// sample: a batch of one, on the module's device. It goes through the module,
// which is one of the course's: a Sequential of layers and Residuals.
LayerMemory PredictLayers(nn::Module& net, const Tensor& sample,
                          std::int64_t samples);

// A table: a line for each, by kind.
std::string MemoryTable(
    const std::vector<std::pair<std::string, MemoryUse>>& uses);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_MEMORY_H_
