#include "chapters/multi_gpu/scratch.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/autograd/tape.h"
#include "common/base/console/language.h"
#include "common/data/loader.h"
#include "common/device/device_table.h"
#include "common/nn/layers.h"
#include "common/ops/nn/functional.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/split_batch.h"

namespace d2l::multi_gpu {
namespace {

// Uniform, of the variance that keeps sums over `fan_in` inputs of size 1.
Tensor Weight(const Shape& shape, std::int64_t fan_in, Device device) {
  return (Rand(shape, device) * 2 - 1) *
         std::sqrt(3.0 / static_cast<double>(fan_in));
}

Params MlpParams(Device device) {
  return {Weight({kImagePixels, 64}, kImagePixels, device), Zeros({64}, device),
          Weight({64, kClasses}, 64, device), Zeros({kClasses}, device)};
}

Tensor MlpForward(const Tensor& x, const Params& p) {
  const Tensor flat = Reshape(x, {-1, kImagePixels});
  const Tensor hidden = Relu(MatMul(flat, p[0]) + p[1]);
  return MatMul(hidden, p[2]) + p[3];
}

Params LeNetParams(Device device) {
  return {Weight({20, 1, 3, 3}, 9, device),     Zeros({20}, device),
          Weight({50, 20, 5, 5}, 500, device),  Zeros({50}, device),
          Weight({800, 128}, 800, device),      Zeros({128}, device),
          Weight({128, kClasses}, 128, device), Zeros({kClasses}, device)};
}

Tensor LeNetForward(const Tensor& x, const Params& p) {
  const Tensor h1 = AvgPool2d(Relu(Conv2d(x, p[0], p[1])), 2);
  const Tensor h2 = AvgPool2d(Relu(Conv2d(h1, p[2], p[3])), 2);
  const Tensor h3 = Relu(MatMul(Reshape(h2, {-1, 800}), p[4]) + p[5]);
  return MatMul(h3, p[6]) + p[7];
}

}  // namespace

std::vector<Device> AllDevices() {
  std::vector<Device> gpus, all;
  for (const DeviceInfo& info : Devices()) {
    all.push_back(info.device);
    if (info.device.type() == DeviceType::kCuda) gpus.push_back(info.device);
  }
  return gpus.empty() ? all : gpus;
}

std::string OneDeviceOr(const std::string& fact) {
  const std::vector<Device> devices = AllDevices();
  if (devices.size() > 1) return fact;
  return Say("There is only one device, %s.", devices[0].ToString());
}

ScratchNet SmallMlp() { return {MlpParams, MlpForward}; }
ScratchNet LeNet() { return {LeNetParams, LeNetForward}; }

Params GetParams(const Params& params, Device device) {
  Params copies;
  for (const Tensor& p : params) copies.push_back(Clone(To(p, device)));
  return copies;
}

ReplicaSet Replicate(const Params& params, const std::vector<Device>& devices) {
  ReplicaSet replicas{devices, {}};
  for (const Device device : devices) {
    replicas.params.push_back(GetParams(params, device));
  }
  return replicas;
}

void BookAllReduce(std::vector<Tensor>& data) {
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[0] += To(data[i], data[0].device());
  }
  for (std::size_t i = 1; i < data.size(); ++i) CopyTo(data[0], data[i]);
}

std::vector<Tensor> GradientsOf(const ScratchNet& net, const Tensor& x,
                                const Tensor& labels, const Params& params) {
  if (x.size(0) == 0) {
    std::vector<Tensor> zeros;
    for (const Tensor& p : params) zeros.push_back(ZerosLike(p));
    return zeros;
  }
  GradientTape tape(params);
  return tape.Backward(nn::CrossEntropyLoss(net.forward(x, params), labels,
                                            nn::Reduction::kSum));
}

void ReduceAll(const Gradients& gradients, const AllReducer& allreduce) {
  for (std::size_t p = 0; p < gradients[0].size(); ++p) {
    std::vector<Tensor> of_devices;
    for (const auto& of_device : gradients) of_devices.push_back(of_device[p]);
    allreduce(of_devices);
  }
}

void TrainBatch(const ScratchNet& net, const Tensor& x, const Tensor& labels,
                ReplicaSet& replicas, double lr, const AllReducer& allreduce) {
  const std::vector<Tensor> xs = SplitBatch(x, replicas.devices);
  const std::vector<Tensor> ys = SplitBatch(labels, replicas.devices);
  Gradients gradients;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    gradients.push_back(GradientsOf(net, xs[i], ys[i], replicas.params[i]));
  }
  ReduceAll(gradients, allreduce);
  const double rate = lr / static_cast<double>(x.size(0));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    for (std::size_t p = 0; p < gradients[i].size(); ++p) {
      replicas.params[i][p] -= gradients[i][p] * rate;
    }
  }
}

Gradients SlowStep(const ScratchNet& net, const Batch& batch,
                   const ReplicaSet& replicas, const std::vector<int>& plan,
                   int slow) {
  const std::vector<std::int64_t> sizes =
      ShardSizes(batch.images.size(0), plan);
  const std::vector<Tensor> xs =
      SplitBatch(batch.images, replicas.devices, sizes);
  const std::vector<Tensor> ys =
      SplitBatch(batch.labels, replicas.devices, sizes);
  Gradients gradients;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const bool last = i + 1 == xs.size();
    for (int time = 0; time < (last ? slow : 1); ++time) {
      std::vector<Tensor> its =
          GradientsOf(net, xs[i], ys[i], replicas.params[i]);
      if (time == 0) gradients.push_back(std::move(its));
    }
  }
  ReduceAll(gradients, BookAllReduce);
  return gradients;
}

double Accuracy(const ScratchNet& net, const Dataset& data,
                const Params& params) {
  LoaderOptions options;
  options.shuffle = false;
  DataLoader loader(data, options, params[0].device());
  Tensor right = Zeros({}, params[0].device());
  while (const std::optional<Batch> batch = loader.Next()) {
    const Tensor found = ArgMax(net.forward(batch->images, params), {1});
    right += Sum(To(found == batch->labels, DType::kFloat32));
  }
  return Item(right) / static_cast<double>(data.size());
}

}  // namespace d2l::multi_gpu
