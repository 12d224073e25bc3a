// Steps of a training on a GPU, whose kernels tools/ptx_counts.py counts.
//
//   training_step lenet|resnet18 BATCH STEPS

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "common/autograd/tape.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

int Run(const std::string& network, std::int64_t batch, int steps) {
  const Device device = TryGpu();
  nn::Sequential net =
      network == "lenet" ? nn::LeNet(device) : nn::ResNet18(10, 1, device);
  nn::SGD sgd(nn::Parameters(net), {/*lr=*/0.1});
  const Tensor images = Randn({batch, 1, 28, 28}, device);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < batch; ++i) labels.push_back(i % 10);
  const Tensor classes = FromVector<std::int64_t>(labels, {batch}, device);
  for (int step = 0; step < steps; ++step) {
    GradientTape tape(nn::Parameters(net));
    const Tensor loss = Mean(CrossEntropy(net(images), classes));
    sgd.Step(tape.Backward(loss));
    std::cout << network << ": loss " << Item(loss) << "\n";
  }
  Synchronize(device);
  return 0;
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "training_step lenet|resnet18 BATCH STEPS\n";
    return 2;
  }
  return d2l::Run(argv[1], std::atoll(argv[2]), std::atoi(argv[3]));
}
