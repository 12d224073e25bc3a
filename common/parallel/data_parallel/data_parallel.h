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
// batch, so that shards need no weights. The gradients lie in buckets, filled
// from the last parameter to the first; a full bucket is added up among the
// devices (AllReduce) while the gradients before it are computed. Then every
// device updates its own replica. All replicas stay the same in every bit; with
// the default algorithm they equal those of one device that computes the shards
// and adds their gradients one after the other.
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
// the gradients. sgd() gathers the momentum. Sums are those of kSplit, so all
// bits stay the same.
//
// Several processes, each with the same number of devices, train one network
// together if the options have the number of processes and a `collective`
// (mpi/mpi_world.h). Each passes the whole batch to every Step, and computes
// its devices' shards of it: all replicas have the bits of one process with all
// the devices. Forward computes the outputs of its process's batch. With shards
// all processes call sgd() together, and take part in a gather.
//
// The module is that of the first device. Values written to it, as by
// nn::LoadStateDict, and to the momentum in sgd(), reach the other devices at
// the next call. The module's tensors must stay: calls throw
// std::invalid_argument after one was moved or replaced.
//
// Failures: if a device cannot compute its part, no device gets the sum;
// waiting for any of them throws AsyncError with the line of the operation that
// failed, and the parameters cannot be used. To continue, load them, and the
// momentum if there is any.
//
// Ownership: it owns the module and its replicas. Thread-safety: none. Errors:
// std::invalid_argument for devices that are not in the table or repeated, and
// for batches without samples.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_DATA_PARALLEL_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_DATA_PARALLEL_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/event.h"
#include "common/device/memory/memory.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/parallel/collective/collective.h"
#include "common/tensor/tensor.h"

namespace d2l {

// An emulated connection: each device's part of an AllReduce takes this much
// longer, as a sleep that needs no core.
struct EmulatedLink {
  double seconds = 0;  // for each AllReduce
  double bytes_per_second = 1e9;
};

// What each device holds only a shard of: this, and all before it.
enum class Shard { kNone, kOptimizer, kGradients };

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

struct DataParallelOptions {
  Shard shard = Shard::kNone;
  AllReduceAlgorithm allreduce = AllReduceAlgorithm::kSplit;
  // The weights of all processes' devices, see ShardSizes; if empty, the batch
  // is split evenly.
  std::vector<int> split;
  // Whether buckets are added up while gradients are computed, or afterwards.
  bool overlap = true;
  // How many steps may be enqueued and not yet done; at least 1.
  int max_in_flight = 2;
  // A bucket is full when it has this many bytes. The first is small, so that
  // the communication begins early.
  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  std::optional<EmulatedLink> emulated_link;
  // Whether each Step restarts its devices' peaks of memory, for memory().
  bool measure_memory = false;
  // How many processes train together, and the number of this process: its
  // device i is number `process` * devices + i of all.
  int processes = 1;
  int process = 0;
  // A collective on a tensor of each device of this process and the others,
  // which all call it in the same order. If empty, collective.h's, for one
  // process, with the algorithm above.
  std::function<Work(Collective, Replicas, SourceLocation)> collective;
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
  const std::vector<Device>& devices() const { return devices_; }
  const DataParallelOptions& options() const { return options_; }

  // The optimiser of the module. Its momentum may be read and written.
  nn::SGD& sgd();

  // The memory of the last step on devices()[i], measured by the allocator,
  // without memory of others; see measure_memory. Waits for the device.
  MemoryUse memory(int i, SourceLocation at = SourceLocation::Current());
  // The memory by a formula: 4 bytes for each float32 parameter, as many for
  // its gradient and its momentum, or a shard of them, and two places of the
  // longest bucket for adding up. The caller passes the memory of
  // the layers' values.
  MemoryUse PredictMemory(int i, std::int64_t activations,
                          std::int64_t temporaries, bool momentum) const;

  // This process's part of a batch: rows [begin, begin + the sum of the sizes).
  struct Share {
    std::int64_t begin = 0;
    std::vector<std::int64_t> sizes;  // of the devices' shards
  };
  Share ShareOf(std::int64_t samples) const;

 private:
  // The part of a parameter that a device updates: all, some or no elements.
  struct Piece {
    std::int64_t begin = 0;   // in the parameter
    std::int64_t offset = 0;  // in the device's shard of the bucket
    Tensor x;

    // The same elements of a tensor that has the parameter's shape, flat.
    Tensor Of(const Tensor& whole, SourceLocation at) const;
  };
  struct Replica {
    std::unique_ptr<nn::Module> net;
    std::vector<Tensor> parameters;
    std::vector<Tensor> state;            // these and the buffers
    std::vector<std::uint64_t> versions;  // of the state when all were equal
    std::vector<Piece> pieces;            // of each parameter
    nn::SGD sgd{{}, {/*lr=*/0}};          // of the pieces
    // Bytes of the last step; `others` are not the network's.
    std::int64_t activations = 0, others = 0;

    void FindTensors();  // of the net
  };
  // Where a parameter's gradient is.
  struct Place {
    std::size_t bucket;
    std::int64_t offset;
  };
  // Gradients of some parameters, one behind the other; in the last bucket the
  // loss follows them.
  struct Bucket {
    std::vector<int> parameters;
    std::int64_t numel = 0;
    DType dtype = DType::kFloat32;
  };
  // A device's part of a step.
  struct Pass;

  void CheckOptions();
  void MakeBuckets();
  // The elements of a bucket that a device updates; all if not sharded.
  std::pair<std::int64_t, std::int64_t> ShardOf(std::size_t bucket,
                                                std::size_t device) const;
  void MakePieces(std::size_t device);
  // GatherPieces gathers tensors like the parameters, of which each device has
  // its pieces, into `whole`, where that gives a tensor.
  using OfParameter =
      absl::FunctionRef<Tensor(std::size_t device, std::size_t parameter)>;
  void GatherPieces(OfParameter piece, OfParameter whole, SourceLocation at);
  void CheckBatch(const Tensor& x, SourceLocation at) const;
  // Checks that the module's tensors are still the same, and copies what was
  // written to them since.
  void FollowModule(SourceLocation at);
  // The optimiser that sgd() returned since the last call; or null.
  nn::SGD* shown_sgd();
  // The ids and versions of that optimiser's momentum.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> MomentumVersions();
  void CopyToReplicas(SourceLocation at);
  void CopyMomentum(SourceLocation at);
  void RememberVersions();
  void WaitForRoom(SourceLocation at);
  // Makes all devices' parameters fail with the exception being handled.
  void FailEverywhere(SourceLocation at);
  Result RequestStep(const Tensor& x, const Tensor& labels, SourceLocation at);
  // This process's part of the batch, on its devices.
  std::vector<Tensor> SplitShare(const Tensor& all, const Share& share,
                                 SourceLocation at) const;
  // Enqueues the forward pass of a shard. Returns the outputs.
  Tensor Forward(std::size_t device, const Tensor& x, const Tensor& labels,
                 double scale, Pass& pass, SourceLocation at);
  // For a process without samples: computes some of the others', which do not
  // count, to write the buffers as the others do.
  void ForwardForOthers(const Tensor& x, const Tensor& labels, Pass& pass,
                        SourceLocation at);
  // Continues the backward pass until the bucket's gradients are known, and
  // writes them there; if there is no pass (no samples), writes zeros.
  void Fill(std::size_t device, std::size_t bucket, Pass* pass,
            const Tensor& gradients, SourceLocation at);
  // The number of buckets whose gradients have a place at the same time. If it
  // is not all, each bucket leaves its place after it is added up.
  std::size_t places() const;
  bool moves_on() const { return options_.shard >= Shard::kGradients; }
  // The bucket's place on each device; and the number of bytes of a place.
  std::vector<Tensor> PlaceOf(std::size_t bucket);
  std::int64_t PlaceBytes(std::size_t place) const;
  // The memory that a device holds between steps.
  MemoryUse Held(std::size_t device);
  // sums: those of each bucket, or of the device's shard of it.
  void Update(const std::vector<std::vector<Tensor>>& sums, SourceLocation at);
  void AverageBuffers(const std::vector<std::int64_t>& sizes,
                      std::int64_t samples, SourceLocation at);
  // The batch's mean loss, on the first device, from the last bucket's sums.
  Tensor Loss(const std::vector<Tensor>& sums, SourceLocation at);
  // Enqueues it on one tensor of each device, behind the current streams.
  Work Communicate(Collective collective, const std::vector<Tensor>& tensors,
                   SourceLocation at);
  // Delays the current streams as a link would for this many bytes each.
  void EmulateLink(double bytes, SourceLocation at) const;
  // Devices of all processes; and a device's number among them.
  int ranks() const {
    return static_cast<int>(devices_.size()) * options_.processes;
  }
  int RankOf(std::size_t device) const {
    return options_.process * static_cast<int>(devices_.size()) +
           static_cast<int>(device);
  }
  bool sharded() const { return options_.shard != Shard::kNone; }

  DataParallelOptions options_;
  std::vector<Device> devices_;
  std::vector<Replica> replicas_;
  std::vector<Bucket> buckets_;
  std::vector<Place> place_of_;                  // by parameter
  std::vector<std::vector<StorageRef>> places_;  // by place and device
  std::optional<nn::SGD> whole_sgd_;             // with the gathered momentum
  // Versions of the momentum when all devices had the same.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> momentum_;
  std::deque<std::vector<Event>> in_flight_;  // the ends of steps
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_DATA_PARALLEL_H_
