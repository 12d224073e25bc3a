#include "chapters/multi_gpu/from_scratch/data_parallel.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace d2l::multi_gpu {
namespace {

// %% d2l/lenet-scratch, d2l/forgotten-allreduce
// Uniform, with such a variance that a sum over `fan_in` inputs of about 1 is
// about 1, too.
Tensor Weight(const Shape& shape, std::int64_t fan_in, Device device) {
  return (Rand(shape, device) * 2 - 1) *
         std::sqrt(3.0 / static_cast<double>(fan_in));
}

// %% d2l/forgotten-allreduce
Params MlpParams(Device device) {
  return {Weight({kImagePixels, 64}, kImagePixels, device), Zeros({64}, device),
          Weight({64, kClasses}, 64, device), Zeros({kClasses}, device)};
}

Tensor MlpForward(const Tensor& x, const Params& p) {
  const Tensor flat = Reshape(x, {-1, kImagePixels});
  const Tensor hidden = Relu(MatMul(flat, p[0]) + p[1]);
  return MatMul(hidden, p[2]) + p[3];
}

// %% d2l/lenet-scratch
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

// %% d2l/lenet-scratch, d2l/forgotten-allreduce, d2l/straggler
// Of the sum of a shard's losses; a shard may have no rows.
Params GradientsOf(const ScratchNet& net, const Tensor& x, const Tensor& labels,
                   const Params& params) {
  GradientTape tape(params);
  return tape.Backward(nn::CrossEntropyLoss(net.forward(x, params), labels,
                                            nn::Reduction::kSum));
}
// %%

// Adds each parameter's gradients up over the devices.
void ReduceAll(const std::vector<Params>& gradients,
               const AllReducer& allreduce) {
  for (std::size_t p = 0; p < gradients[0].size(); ++p) {
    std::vector<Tensor> of_devices;
    for (const Params& of_device : gradients)
      of_devices.push_back(of_device[p]);
    allreduce(of_devices);
  }
}

}  // namespace

ScratchNet SmallMlp() { return {MlpParams, MlpForward}; }
ScratchNet LeNet() { return {LeNetParams, LeNetForward}; }

ReplicaSet Replicate(const Params& params, const std::vector<Device>& devices) {
  ReplicaSet replicas{devices, {}};
  for (const Device device : devices) {
    Params& copies = replicas.params.emplace_back();
    for (const Tensor& p : params) copies.push_back(Clone(To(p, device)));
  }
  return replicas;
}

// %% d2l/allreduce
// SplitBatch: common/parallel/data_parallel/split_batch.cc
// The book's first allreduce: an assignment makes a name stand for another
// tensor.
void RebindingAllReduce(std::vector<Tensor> data) {
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[0] += To(data[i], data[0].device());
  }
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[i] = To(data[0], data[i].device());
  }
}

// The later one, which writes into the tensors' memory.
void BookAllReduce(std::vector<Tensor>& data) {
  for (std::size_t i = 1; i < data.size(); ++i) {
    data[0] += To(data[i], data[0].device());
  }
  for (std::size_t i = 1; i < data.size(); ++i) CopyTo(data[0], data[i]);
}

// %% d2l/lenet-scratch, d2l/forgotten-allreduce
// ReduceAll calls `allreduce` with the gradients of each parameter.
void TrainBatch(const ScratchNet& net, const Tensor& x, const Tensor& labels,
                ReplicaSet& replicas, double lr, const AllReducer& allreduce) {
  const std::vector<Tensor> xs = SplitBatch(x, replicas.devices);
  const std::vector<Tensor> ys = SplitBatch(labels, replicas.devices);
  std::vector<Params> gradients;  // by device
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
// %%

double Distance(const ReplicaSet& replicas) {
  double square = 0;
  for (std::size_t p = 0; p < replicas.params[0].size(); ++p) {
    const Tensor first = replicas.params.front()[p];
    const Tensor last = To(replicas.params.back()[p], first.device());
    square += Item(Sum(Square(first - last)));
  }
  return std::sqrt(square);
}

// %% d2l/straggler
// ReduceAll calls BookAllReduce with the gradients of each parameter.
std::vector<Params> SlowStep(const ScratchNet& net, const Batch& batch,
                             const ReplicaSet& replicas,
                             const std::vector<int>& plan, int slow) {
  const std::vector<Device>& devices = replicas.devices;
  const std::vector<std::int64_t> sizes =
      ShardSizes(batch.images.size(0), plan);
  const std::vector<Tensor> xs = SplitBatch(batch.images, devices, sizes);
  const std::vector<Tensor> ys = SplitBatch(batch.labels, devices, sizes);
  std::vector<Params> gradients;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    gradients.push_back(GradientsOf(net, xs[i], ys[i], replicas.params[i]));
  }
  for (int time = 1; time < slow; ++time) {  // the last one computes them again
    GradientsOf(net, xs.back(), ys.back(), replicas.params.back());
  }
  ReduceAll(gradients, BookAllReduce);
  return gradients;
}
// %%

double Accuracy(const std::function<Tensor(const Tensor&)>& net,
                const Dataset& data, Device device) {
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

}  // namespace d2l::multi_gpu
