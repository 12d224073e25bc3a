// Data parallelism from scratch, as the book writes it (d2l 13.5): plain
// tensors and a tape for each device.
//
//   const std::vector<Device> devices = AllDevices();
//   ReplicaSet replicas = Replicate(LeNet().init(devices[0]), devices);
//   TrainBatch(LeNet(), images, labels, replicas, 0.2);
//
// The thread that runs a cell calls these asynchronous functions.

#ifndef D2L_CHAPTERS_MULTI_GPU_FROM_SCRATCH_DATA_PARALLEL_H_
#define D2L_CHAPTERS_MULTI_GPU_FROM_SCRATCH_DATA_PARALLEL_H_

#include <functional>
#include <vector>

#include "common/d2l.h"

namespace d2l::multi_gpu {

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

// The parameters of each device.
struct ReplicaSet {
  std::vector<Device> devices;
  std::vector<Params> params;
};
// Each device gets a copy.
ReplicaSet Replicate(const Params& params, const std::vector<Device>& devices);

// The sum of the tensors, one on each device, in each of them: added on the
// first device, in order, and copied back.
void BookAllReduce(std::vector<Tensor>& data);
// The book's first version, which leaves the sum on the first device.
void RebindingAllReduce(std::vector<Tensor> data);

using AllReducer = std::function<void(std::vector<Tensor>&)>;

// A step: gradients, their sum over the devices, and an update of each replica.
void TrainBatch(const ScratchNet& net, const Tensor& x, const Tensor& labels,
                ReplicaSet& replicas, double lr,
                const AllReducer& allreduce = BookAllReduce);

// How far the last replica's parameters are from the first one's.
double Distance(const ReplicaSet& replicas);

// The summed gradients of a batch, by device. The devices have shards in
// proportion to the plan. The last device is `slow` times as slow: it computes
// its gradients so often.
std::vector<Params> SlowStep(const ScratchNet& net, const Batch& batch,
                             const ReplicaSet& replicas,
                             const std::vector<int>& plan, int slow);

// The part of the data that `net`, from images to outputs, classifies right.
double Accuracy(const std::function<Tensor(const Tensor&)>& net,
                const Dataset& data, Device device);

}  // namespace d2l::multi_gpu

#endif  // D2L_CHAPTERS_MULTI_GPU_FROM_SCRATCH_DATA_PARALLEL_H_
