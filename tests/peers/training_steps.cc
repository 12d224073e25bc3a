// Steps of SGD on given batches, from given weights; prints each step's loss.
//
//   bazel run //tests/peers:training_steps -- --net=lenet --steps=50
//       --weights=in.safetensors --batches=batches.safetensors
//       --save=out.safetensors
//
// The weights decide the dtype. Batches are "x", of shape (steps, batch,
// channels, height, width), and "labels", (steps, batch). training_parity.py
// compares with PyTorch.

#include <algorithm>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "common/autograd/tape.h"
#include "common/base/files/atomic_file.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/sgd.h"
#include "common/nn/state_dict.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"

ABSL_FLAG(std::string, net, "lenet", "lenet or resnet18.");
ABSL_FLAG(std::string, weights, "", "A safetensors file.");
ABSL_FLAG(std::string, batches, "", "A safetensors file.");
ABSL_FLAG(std::string, save, "", "Where the weights are saved in the end.");
ABSL_FLAG(std::int64_t, steps, 0, "At most as many as there are batches.");
ABSL_FLAG(double, lr, 0.1, "The learning rate.");
ABSL_FLAG(double, momentum, 0, "Of SGD.");

namespace d2l {
namespace {

absl::Status Run() {
  const std::string name = absl::GetFlag(FLAGS_net);
  nn::Sequential net = name == "resnet18" ? nn::ResNet18(10) : nn::LeNet();
  const std::string weights = UserPath(absl::GetFlag(FLAGS_weights));
  absl::StatusOr<safetensors::File> file = safetensors::LoadFile(weights);
  if (!file.ok()) return file.status();
  for (const auto& [key, tensor] : file->tensors) {
    if (tensor.dtype() == DType::kFloat64) nn::To(net, DType::kFloat64);
  }
  absl::Status status = nn::LoadStateDict(net, weights).status();
  if (!status.ok()) return status;
  const std::int64_t steps = absl::GetFlag(FLAGS_steps);
  if (steps > 0) {
    file = safetensors::LoadFile(UserPath(absl::GetFlag(FLAGS_batches)));
    if (!file.ok()) return file.status();
    if (file->tensors.count("x") + file->tensors.count("labels") != 2) {
      return absl::InvalidArgumentError("--batches has no \"x\" or \"labels\"");
    }
    const Tensor& x = file->tensors["x"];
    const Tensor& labels = file->tensors["labels"];
    nn::SGD sgd(nn::Parameters(net),
                {absl::GetFlag(FLAGS_lr), absl::GetFlag(FLAGS_momentum)});
    for (std::int64_t step = 0; step < std::min(steps, x.size(0)); ++step) {
      GradientTape tape(nn::Parameters(net));
      const Tensor loss = nn::CrossEntropyLoss(net(Select(x, 0, step)),
                                               Select(labels, 0, step));
      sgd.Step(tape.Backward(loss));
      std::cout << absl::StrFormat("%.17g\n", Item(loss));
    }
  }
  const std::string save = absl::GetFlag(FLAGS_save);
  return save.empty() ? absl::OkStatus()
                      : nn::SaveStateDict(net, UserPath(save));
}

int Main() {
  try {
    const absl::Status status = Run();
    if (status.ok()) return 0;
    std::cerr << status.message() << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
  }
  return 1;
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Trains a network for some steps.");
  absl::ParseCommandLine(argc, argv);
  return d2l::Main();
}
