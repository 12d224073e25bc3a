// Data parallelism from scratch, as the book writes it (d2l 13.5): plain
// tensors and a tape for each device.
//
//   const std::vector<Device> devices = AllDevices();
//   ReplicaSet replicas = Replicate(net.init(), devices);
//   TrainBatch(net, images, labels, replicas, 0.2);
//
// For the thread that runs a cell; asynchronous, like the operations.

#ifndef D2L_CHAPTERS_MULTI_GPU_SCRATCH_H_
#define D2L_CHAPTERS_MULTI_GPU_SCRATCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "common/tensor/tensor.h"

namespace d2l::multi_gpu {

// The table's GPUs; without one, all its devices (d2l.try_all_gpus).
std::vector<Device> AllDevices();
// That there is only one of them, or else `fact`.
std::string OneDeviceOr(const std::string& fact);

using Params = std::vector<Tensor>;

// A network that is a function of its parameters.
struct ScratchNet {
  Params (*init)(Device device);
  Tensor (*forward)(const Tensor& x, const Params& params);
};

// Linear(784, 64), ReLU, Linear(64, 10): 50,890 parameters.
ScratchNet SmallMlp();

// The book's LeNet, conv 1 to 20 3x3, ReLU, pool, conv 20 to 50 5x5, ReLU,
// pool, 800 to 128, ReLU, 10: 129,068 parameters. x: (n, 1, 28, 28).
ScratchNet LeNet();

// The parameters, copied to a device.
Params GetParams(const Params& params, Device device);

// The parameters of each device.
struct ReplicaSet {
  std::vector<Device> devices;
  std::vector<Params> params;
};
ReplicaSet Replicate(const Params& params, const std::vector<Device>& devices);

// The sum of the tensors, one on each device, in each of them: added on the
// first device, in order, and copied back.
void BookAllReduce(std::vector<Tensor>& data);

using Gradients = std::vector<std::vector<Tensor>>;  // by device

// Of the sum of a shard's losses; zeros for a shard without rows.
std::vector<Tensor> GradientsOf(const ScratchNet& net, const Tensor& x,
                                const Tensor& labels, const Params& params);

using AllReducer = std::function<void(std::vector<Tensor>&)>;

// Adds each parameter's gradients up over the devices.
void ReduceAll(const Gradients& gradients, const AllReducer& allreduce);

// A step: gradients, their sum over the devices, and an update of each replica.
void TrainBatch(
    const ScratchNet& net, const Tensor& x, const Tensor& labels,
    ReplicaSet& replicas, double lr,
    const std::function<void(std::vector<Tensor>&)>& allreduce = BookAllReduce);

// The summed gradients of a batch, of which the devices have shards in
// proportion to the plan. The last device is `slow` times as slow: it computes
// its own so often.
Gradients SlowStep(const ScratchNet& net, const Batch& batch,
                   const ReplicaSet& replicas, const std::vector<int>& plan,
                   int slow);

// The part of the data that the network has right.
double Accuracy(const ScratchNet& net, const Dataset& data,
                const Params& params);

}  // namespace d2l::multi_gpu

#endif  // D2L_CHAPTERS_MULTI_GPU_SCRATCH_H_
