#include "common/nn/models.h"

#include "common/nn/image_layers.h"

namespace d2l::nn {

Sequential LeNet(Device device) {
  return Sequential(Conv2d(1, 20, 3, {}, true, device), ReLU(), AvgPool2d(2, 2),
                    Conv2d(20, 50, 5, {}, true, device), ReLU(),
                    AvgPool2d(2, 2), Flatten(), Linear(800, 128, true, device),
                    ReLU(), Linear(128, 10, true, device));
}

}  // namespace d2l::nn
