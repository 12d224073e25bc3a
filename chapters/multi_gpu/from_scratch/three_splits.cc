#include "chapters/multi_gpu/from_scratch/three_splits.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "chapters/multi_gpu/from_scratch/data_parallel.h"

namespace d2l::multi_gpu {
namespace {

// %% d2l/three-splits
// The network is a chain of blocks, x + Branch(x, w1, w2).
Tensor Branch(const Tensor& x, const Tensor& w1, const Tensor& w2) {
  return MatMul(Relu(MatMul(x, w1)), w2);
}

// y may be a part of the batch; batch_numel counts the whole batch's elements.
Tensor Loss(const Tensor& y, const Tensor& target, std::int64_t batch_numel) {
  return Sum(Square(y - target)) / static_cast<double>(batch_numel);
}

Tensor Forward(Tensor x, const SplitNet& net) {
  for (std::size_t i = 0; i < net.size(); i += 2) {
    x = x + Branch(x, net[i], net[i + 1]);
  }
  return x;
}

// As SplitGradients, with all of a gradient in one part. The types and Step:
// chapters/multi_gpu/from_scratch/three_splits.h
SplitGradients Whole(const std::vector<Tensor>& gradients) {
  SplitGradients parts;
  for (const Tensor& gradient : gradients) parts.push_back({gradient});
  return parts;
}
// %%

}  // namespace

SplitNet MakeSplitNet(int blocks, std::int64_t width, std::int64_t hidden,
                      Device device) {
  SplitNet net;
  for (int i = 0; i < blocks; ++i) {
    net.push_back(Randn({width, hidden}, device) /
                  std::sqrt(static_cast<double>(width)));
    net.push_back(Randn({hidden, width}, device) /
                  std::sqrt(static_cast<double>(hidden)));
  }
  return net;
}

std::vector<float> OnHost(const SplitGradients& gradients) {
  std::vector<float> all;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    std::vector<Tensor> parts;
    for (const Tensor& part : gradients[i]) {
      parts.push_back(To(part, gradients[i][0].device()));
    }
    const std::vector<float> joined =
        ToVector<float>(Cat(parts, /*dim=*/i % 2 == 0 ? 1 : 0));
    all.insert(all.end(), joined.begin(), joined.end());
  }
  return all;
}

Step OneDevice(const SplitNet& net) {
  return [net](const Tensor& x, const Tensor& target) {
    GradientTape tape(net);
    return Whole(tape.Backward(Loss(Forward(x, net), target, x.numel())));
  };
}

// %% d2l/three-splits
// By layers: block i is on device i * devices / blocks, for micro-batches in
// turn.
Step Pipeline(const SplitNet& net, const std::vector<Device>& devices,
              int micro_batches) {
  SplitNet placed;
  for (std::size_t i = 0; i < net.size(); ++i) {
    // Both weights of a block on one device.
    const std::size_t stage = (i / 2) * devices.size() / (net.size() / 2);
    placed.push_back(To(net[i], devices[stage]));
  }
  return [=](const Tensor& x, const Tensor& target) {
    const std::int64_t rows = (x.size(0) + micro_batches - 1) / micro_batches;
    const std::vector<Tensor> targets = Split(target, rows);
    GradientTape tape(placed);
    Tensor loss;
    std::size_t batch = 0;
    for (Tensor h : Split(x, rows)) {
      for (std::size_t i = 0; i < placed.size(); i += 2) {
        h = To(h, placed[i].device());
        h = h + Branch(h, placed[i], placed[i + 1]);
      }
      const Tensor part = Loss(h, To(targets[batch++], h.device()), x.numel());
      loss = loss.defined() ? loss + part : part;
    }
    return Whole(tape.Backward(loss));
  };
}

// %% d2l/three-splits
// Within a layer: each device has columns of w1 and the same rows of w2.
Step WithinLayers(const SplitNet& net, const std::vector<Device>& devices) {
  const std::size_t n = devices.size();
  std::vector<Tensor> shards;  // of the first weight, for each device, and on
  for (std::size_t i = 0; i < net.size(); ++i) {
    const int dim = i % 2 == 0 ? 1 : 0;
    const std::vector<Tensor> parts = SplitWithSizes(
        net[i], ShardSizes(net[i].size(dim), std::vector<int>(n, 1)), dim);
    for (std::size_t d = 0; d < n; ++d) {
      shards.push_back(Clone(To(parts[d], devices[d])));
    }
  }
  return [=](const Tensor& x, const Tensor& target) {
    GradientTape tape(shards);
    std::vector<Tensor> xs;
    for (const Device device : devices) xs.push_back(To(x, device));
    for (std::size_t i = 0; i < shards.size(); i += 2 * n) {
      Tensor sum;
      for (std::size_t d = 0; d < n; ++d) {
        const Tensor part =
            To(Branch(xs[d], shards[i + d], shards[i + n + d]), devices[0]);
        sum = sum.defined() ? sum + part : part;
      }
      const bool last = i + 2 * n == shards.size();
      for (std::size_t d = 0; d < (last ? 1 : n); ++d) {
        xs[d] = xs[d] + To(sum, devices[d]);
      }
    }
    const std::vector<Tensor> gradients =
        tape.Backward(Loss(xs[0], target, x.numel()));
    SplitGradients parts;
    for (std::size_t i = 0; i < gradients.size(); i += n) {
      parts.emplace_back(gradients.begin() + i, gradients.begin() + i + n);
    }
    return parts;
  };
}

// %% d2l/three-splits
// Data: each device has all weights, and a shard of the batch. BookAllReduce:
// chapters/multi_gpu/from_scratch/data_parallel.cc
Step DataShards(const SplitNet& net, const std::vector<Device>& devices) {
  const ReplicaSet replicas = Replicate(net, devices);
  return [=, weights = net.size()](const Tensor& x, const Tensor& target) {
    const std::vector<Tensor> xs = SplitBatch(x, devices);
    const std::vector<Tensor> targets = SplitBatch(target, devices);
    std::vector<std::vector<Tensor>> gradients(weights);
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if (xs[d].size(0) == 0) continue;
      GradientTape tape(replicas.params[d]);
      const std::vector<Tensor> of_shard = tape.Backward(
          Loss(Forward(xs[d], replicas.params[d]), targets[d], x.numel()));
      for (std::size_t i = 0; i < of_shard.size(); ++i) {
        gradients[i].push_back(of_shard[i]);
      }
    }
    SplitGradients sums;
    for (std::vector<Tensor>& of_devices : gradients) {
      BookAllReduce(of_devices);
      sums.push_back({of_devices[0]});
    }
    return sums;
  };
}
// %%

void BytesMoved::OnOp(const OpRecord& record) {
  const Tensor& out = record.output;
  for (const Tensor* in : record.inputs) {
    if (in->device() != out.device()) {
      bytes_ += in->numel() * static_cast<std::int64_t>(DTypeSize(in->dtype()));
    }
  }
}

std::int64_t BytesOf(const Step& step, const Tensor& x, const Tensor& target) {
  BytesMoved moved;
  {
    const ScopedOpListener listen(&moved);
    step(x, target);
  }
  return moved.bytes();
}

}  // namespace d2l::multi_gpu
