#include "common/nn/models.h"

#include <memory>
#include <string>
#include <utility>

#include "common/nn/layers.h"

namespace d2l::nn {

Sequential LeNet(Device device) {
  return Sequential(Conv2d(1, 20, 3, {}, true, device), ReLU(), AvgPool2d(2, 2),
                    Conv2d(20, 50, 5, {}, true, device), ReLU(),
                    AvgPool2d(2, 2), Flatten(), Linear(800, 128, device),
                    ReLU(), Linear(128, 10, device));
}

Sequential ResNet18(std::int64_t num_classes, std::int64_t in_channels,
                    Device device) {
  Sequential net(Conv2d(in_channels, 64, 3, {1, 1}, true, device),
                 BatchNorm2d(64, 1e-5, 0.1, device), ReLU());
  std::int64_t channels = 64;
  for (const int stage : {1, 2, 3, 4}) {
    auto block = std::make_unique<Sequential>();
    if (stage == 1) {
      block->Append(Residual(channels, channels, false, 1, device));
    } else {
      block->Append(Residual(channels, 2 * channels, true, 2, device));
      channels *= 2;
    }
    block->Append(Residual(channels, channels, false, 1, device));
    net.AddModule("resnet_block" + std::to_string(stage), std::move(block));
  }
  net.AddModule("global_avg_pool", std::make_unique<GlobalAvgPool2d>());
  net.AddModule("fc", std::make_unique<Sequential>(
                          Flatten(), Linear(channels, num_classes, device)));
  return net;
}

}  // namespace d2l::nn
