// The networks of the book's chapter on several GPUs, for images of 28×28.
//
//   nn::Sequential net = nn::LeNet();
//   Tensor logits = net(Randn({8, 1, 28, 28}));  // of shape (8, 10)
//
// The initial values are PyTorch's: see module.h for others. Their state dicts
// have the names of the book's networks in PyTorch.

#ifndef D2L_COMMON_NN_MODELS_H_
#define D2L_COMMON_NN_MODELS_H_

#include <cstdint>

#include "common/device/device.h"
#include "common/nn/layers.h"

namespace d2l::nn {

// 129,068 parameters.
Sequential LeNet(Device device = Device());

// ResNet-18 with a first convolution of 3×3 and stride 1 and no pool after it:
// 11,175,818 parameters with 10 classes and one input channel. Images may have
// any size.
Sequential ResNet18(std::int64_t num_classes, std::int64_t in_channels = 1,
                    Device device = Device());

}  // namespace d2l::nn

#endif  // D2L_COMMON_NN_MODELS_H_
