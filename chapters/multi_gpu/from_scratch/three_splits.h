// Three ways to split the work of a step over devices, as small programs.
//
//   const SplitNet net = MakeSplitNet(2, 256, 512, devices[0]);
//   const Step step = Pipeline(net, devices, /*micro_batches=*/4);
//   SplitGradients gradients = step(x, target);  // asynchronous
//   BytesOf(step, x, target);                    // what it moves
//
// The network is a chain of blocks, x + relu(x @ w1) @ w2, and the loss the
// mean of the squared differences from a target. The batch is on the first
// device; all that a step moves from there on is counted (BytesMoved).
//
// The thread that runs a cell calls these.

#ifndef D2L_CHAPTERS_MULTI_GPU_FROM_SCRATCH_THREE_SPLITS_H_
#define D2L_CHAPTERS_MULTI_GPU_FROM_SCRATCH_THREE_SPLITS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "common/d2l.h"

namespace d2l::multi_gpu {

// w1 and w2 of each block in turn: (width, hidden), (hidden, width).
using SplitNet = std::vector<Tensor>;

SplitNet MakeSplitNet(int blocks, std::int64_t width, std::int64_t hidden,
                      Device device);

// For each weight its parts, each where it was computed: columns of a w1, rows
// of a w2, or one part that is all of it.
using SplitGradients = std::vector<std::vector<Tensor>>;

using Step =
    std::function<SplitGradients(const Tensor& x, const Tensor& target)>;

// All gradients on the host, joined.
std::vector<float> OnHost(const SplitGradients& gradients);

// On one device. The other splits must have the same result.
Step OneDevice(const SplitNet& net);
// Layers: block i on device i * devices / blocks, for micro-batches in turn,
// all forward, then all back.
Step Pipeline(const SplitNet& net, const std::vector<Device>& devices,
              int micro_batches);
// Within a layer: each device has columns of w1 and the same rows of w2. A sum
// over the devices in each block, forward and back.
Step WithinLayers(const SplitNet& net, const std::vector<Device>& devices);
// Data: each device has all weights, and a shard of the batch. The gradients
// are summed.
Step DataShards(const SplitNet& net, const std::vector<Device>& devices);

// Counts the bytes that this thread's operations read from another device than
// the one that they run on.
class BytesMoved : public OpListener {
 public:
  void OnOp(const OpRecord& record) override;
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

// The bytes that a step moves.
std::int64_t BytesOf(const Step& step, const Tensor& x, const Tensor& target);

}  // namespace d2l::multi_gpu

#endif  // D2L_CHAPTERS_MULTI_GPU_FROM_SCRATCH_THREE_SPLITS_H_
