#include "chapters/multi_gpu/networks.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chapters/multi_gpu/scratch.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/nn/layers.h"
#include "common/ops/ops.h"

namespace d2l::multi_gpu {

std::vector<int> NumbersOf(const std::vector<Device>& devices) {
  std::vector<int> numbers;
  for (const Device device : devices) {
    for (std::size_t i = 0; i < Devices().size(); ++i) {
      if (Devices()[i].device == device) {
        numbers.push_back(static_cast<int>(i));
      }
    }
  }
  return numbers;
}

std::string Names(const std::vector<Device>& devices) {
  const auto add = [](std::string* text, Device device) {
    absl::StrAppendFormat(text, "device(type='%s', index=%d)",
                          DeviceTypeName(device.type()), device.index());
  };
  return "[" + absl::StrJoin(devices, ", ", add) + "]";
}

std::function<void()> Stepper(const std::shared_ptr<DataParallel>& net,
                              std::int64_t each) {
  const auto devices = static_cast<std::int64_t>(net->devices().size());
  const Device first = net->devices()[0];
  const Tensor x = Rand({devices * each, 1, kImageSide, kImageSide}, first);
  const Tensor y = RandInt(0, kClasses, {devices * each}, first);
  return [=] { net->Step(x, y, {/*lr=*/1e-4}); };
}

double TrainEpoch(DataParallel& net, DataLoader& loader, double lr) {
  const Timer timer;
  net.Train();
  while (const std::optional<Batch> batch = loader.Next()) {
    net.Step(batch->images, batch->labels, {lr});
  }
  for (const Device device : net.devices()) Synchronize(device);
  return timer.Seconds();
}

double EvaluateAccuracy(nn::Module& net, const Dataset& data, Device device) {
  net.Eval();
  LoaderOptions options;
  options.shuffle = false;
  DataLoader loader(data, options, device);
  Tensor right = Zeros({}, device);
  while (const std::optional<Batch> batch = loader.Next()) {
    const Tensor found = ArgMax(net(batch->images), {1});
    right += Sum(To(found == batch->labels, DType::kFloat32));
  }
  return Item(right) / static_cast<double>(data.size());
}

std::shared_ptr<DataParallel> LinkedMlp(const std::vector<Device>& devices,
                                        bool overlap, bool link) {
  DataParallelOptions options;
  options.overlap = overlap;
  options.first_bucket_bytes = options.bucket_bytes = std::int64_t{1} << 18;
  if (link) options.emulated_link = EmulatedLink{2e-4, 2.5e8};
  const Device first = devices[0];
  return std::make_shared<DataParallel>(
      nn::Sequential(nn::Linear(784, 512, first), nn::ReLU(),
                     nn::Linear(512, 512, first), nn::ReLU(),
                     nn::Linear(512, 10, first)),
      NumbersOf(devices), options);
}

}  // namespace d2l::multi_gpu
