// DataParallel: one network on several devices, each of which computes a part
// of every batch (torch.nn.DataParallel).
//
//   nn::Linear net(10, 1);
//   std::cout << DataParallel(std::move(net));  // on all devices
//   // DataParallel(
//   //   (module): Linear(in_features=10, out_features=1, bias=True)
//   // )
//   DataParallel mlp(nn::Linear(20, 3), /*device_ids=*/{0, 1});
//   Tensor x = Randn({5, 20});
//   Tensor labels = RandInt(0, 3, {5});
//   Tensor loss = mlp.Step(x, labels, {/*lr=*/0.1}).loss;  // trains
//   Tensor y = mlp(x);                                     // only computes
//
// Step splits the batch (split_batch.h). Each device computes the loss of its
// shard, summed, and the gradients of that divided by the size of the whole
// batch, so that shards need no weights (step.h). The gradients lie in buckets
// (buckets.h); a full bucket is added up among the devices (AllReduce) while
// the gradients before it are computed. Then every device updates its own
// replica (shards.h). All replicas stay the same in every bit; with the default
// algorithm they equal those of one device that computes the shards and adds
// their gradients one after the other.
//
// Batch normalisation takes the statistics of each shard; after Step, running
// statistics are the mean of the devices', weighted with the sizes of their
// shards. Forward is for modules under Eval; under Train it keeps only the
// first device's running statistics. Dropout differs between devices.
//
// One thread enqueues everything, and waits only for the step before the last
// (max_in_flight).
//
// Every device holds all parameters, gradients and momentum, unless
// options.shard says otherwise (ZeRO's first two stages). With kOptimizer each
// updates a shard of every bucket, holds the only momentum of that shard, and
// gathers the other new values. With kGradients each also keeps only a shard of
// the gradients. Sums are those of kSplit, so all bits stay the same.
//
// Several processes, each with the same number of devices, train one network
// together if the options have the number of processes and a `collective`
// (mpi/mpi_world.h). Each passes the whole batch to every Step, and computes
// its devices' shards of it: all replicas have the bits of one process with all
// the devices. Forward computes the outputs of its process's batch. With shards
// all processes call sgd() together, and take part in a gather.
//
// The module is that of the first device. Values written to it, as by
// nn::LoadStateDict, its modes, as after Eval of a part of it, and values
// written to the momentum in sgd(), reach the other devices at the next Step or
// Forward. The module's tensors must stay: calls throw std::invalid_argument
// after one was moved or replaced.
//
// Failures, with and without shards: if a device cannot compute its part of the
// sum, no device gets the sum, and waiting for any of them throws AsyncError
// with the line of the operation that failed. If an update fails, the replicas
// are no longer the same. In any case the step's results, the parameters, the
// buffers and the momentum are lost. To continue, wait for the devices
// (Synchronize, for each), then load the parameters and buffers. Momentum that
// is not loaded, too, begins anew, as before the first step. When the failure
// becomes known makes no difference: Step throws none that is still to be
// reported (stream.h), except by its wait for the step before the last.
//
// Ownership: it owns the module and its replicas. Thread-safety: none. Errors:
// std::invalid_argument for devices that are not in the table or repeated, and
// for batches without samples.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_DATA_PARALLEL_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_DATA_PARALLEL_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/event.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/parallel/data_parallel/buckets.h"
#include "common/parallel/data_parallel/communicator.h"
#include "common/parallel/data_parallel/options.h"
#include "common/parallel/data_parallel/replicas.h"
#include "common/parallel/data_parallel/shards.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "common/tensor/tensor.h"

namespace d2l {

// A device's memory in a step, by purpose, in bytes.
struct MemoryUse {
  std::int64_t parameters = 0;   // and buffers
  std::int64_t gradients = 0;    // in buckets, and their shards
  std::int64_t optimizer = 0;    // momentum
  std::int64_t activations = 0;  // kept by the forward for the backward pass
  std::int64_t temporaries = 0;  // the rest of the peak

  std::int64_t peak() const {
    return parameters + gradients + optimizer + activations + temporaries;
  }
};

class DataParallel : public nn::Module {
 public:
  // device_ids: numbers of devices in the table (Devices()); if empty, all.
  // Moves the net to the first if necessary, and clones it to the others.
  explicit DataParallel(std::unique_ptr<nn::Module> net,
                        const std::vector<int>& device_ids = {},
                        DataParallelOptions options = {});
  template <typename Net,
            typename = std::enable_if_t<std::is_base_of_v<nn::Module, Net>>>
  explicit DataParallel(Net net, const std::vector<int>& device_ids = {},
                        DataParallelOptions options = {})
      : DataParallel(std::make_unique<Net>(std::move(net)), device_ids,
                     std::move(options)) {}

  DataParallel(DataParallel&&) = delete;
  DataParallel& operator=(DataParallel&&) = delete;

  // The outputs for the whole batch, on the first device. They are a constant
  // to a tape: train with Step.
  Tensor Forward(const Tensor& x) override;
  std::string Name() const override { return "DataParallel"; }
  void Members(nn::MemberVisitor& visitor) override;
  void Train(bool mode) override;
  using nn::Module::Train;

  struct Result {
    Tensor loss;  // the batch's mean, one number on the first device
    // The outputs of this process's shards that have samples, each on its
    // device; see JoinShards.
    std::vector<Tensor> outputs;
  };
  // One step of training with a batch, by nn::CrossEntropyLoss. Asynchronous.
  Result Step(const Tensor& x, const Tensor& labels,
              const nn::SGDOptions& options,
              SourceLocation at = SourceLocation::Current());

  nn::Module& module() { return replica(0); }
  // The replica on devices()[i]; number 0 is the module.
  nn::Module& replica(int i) { return *replicas_[i].net; }
  const std::vector<Device>& devices() const { return all_.devices(); }
  const DataParallelOptions& options() const { return options_; }

  // The optimiser of the module. Its momentum, of which shards are gathered for
  // it, may be read and written until the next Step or Forward. Waits for steps
  // under way.
  nn::SGD& sgd(SourceLocation at = SourceLocation::Current());

  // The memory of the last step on devices()[i], measured by the allocator,
  // without memory of others; see measure_memory. Waits for the device.
  MemoryUse memory(int i, SourceLocation at = SourceLocation::Current());
  // The memory by a formula: 4 bytes for each float32 parameter, as many for
  // its gradient and its momentum, or a shard of them, and two buckets of the
  // greatest length for adding up. The caller passes the memory of the layers'
  // values.
  MemoryUse PredictMemory(int i, std::int64_t activations,
                          std::int64_t temporaries, bool momentum) const;

  // This process's part of a batch.
  BatchShare ShareOf(std::int64_t samples) const;

 private:
  // Gives the replicas what was written to the module and shown by sgd().
  void Follow(SourceLocation at);
  // Waits for the devices, whose streams run again then. Drops the momentum if
  // a step has failed.
  void Settle(SourceLocation at);
  void WaitForRoom(SourceLocation at);
  // Makes the step that throws the exception being handled fail on all devices.
  void FailEverywhere(SourceLocation at);
  // The memory that a device holds between steps.
  MemoryUse Held(int i);

  DataParallelOptions options_;
  Communicator all_;
  ModuleReplicas replicas_;
  Buckets buckets_;
  Shards shards_;
  std::deque<std::vector<Event>> in_flight_;  // the ends of steps
  bool settled_ = true;                       // no step was begun since Settle
  // By device, bytes of the last step; `others_` are not the network's.
  std::vector<std::int64_t> activations_, others_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_DATA_PARALLEL_H_
