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
// from the last parameter to the first; a full one is added up among the
// devices (AllReduce) while the gradients before it are computed. Then every
// device updates its own replica. All replicas stay the same in every bit; by
// the default algorithm they are what one device gets that computes the shards
// and adds their gradients one after the other.
//
// Batch normalisation takes the statistics of each shard; running statistics
// are the mean of the devices', weighted with the sizes of their shards. That
// is so after Step; Forward is for modules under Eval: under Train, the first
// device's running statistics are what is left of it.
// Dropout differs between devices.
//
// One thread requests everything: nothing waits, but for the step before the
// last (max_in_flight).
//
// Every device holds all parameters, gradients and momentum, unless
// options.shard says otherwise (ZeRO's three stages; PyTorch's FSDP). With
// kOptimizer each updates a shard of every bucket, which has the only momentum
// of these parameters, and all gather the new values. With kGradients each
// keeps a shard of the gradients, too, and with kParameters of the parameters,
// which are gathered before a layer uses them (sharded_parameters.h): module()
// and replica() gather all, and what they gave before must not be used after
// the next Step or Forward. sgd() gathers the momentum. Sums are those of
// kSplit, so all bits stay the same. A module's parameters and their copies are
// whole while the DataParallel is being made.
//
// Several processes, each with as many devices, train one network together, if
// the options have their number and a `collective` (mpi/mpi_world.h). Each
// gives every Step the whole batch, and computes its devices' shards of it: all
// replicas have the bits of one process with all the devices. Forward computes
// the outputs of its process's batch. With shards all processes call sgd()
// together; with kParameters, for which each has one device, also module(),
// replica(), Forward, and what shows the module's members, as printing does:
// what is gathered comes from all. Their networks use the parameters in one
// order, whatever the samples are.
//
// The module is that of the first device. Values written to it, as by
// nn::LoadStateDict, and to the momentum in sgd(), reach the other devices at
// the next call. The module's tensors must stay: calls throw
// std::invalid_argument after one was moved or replaced.
//
// Failures: if a device cannot compute its part, no device gets the sum;
// waiting for any of them throws AsyncError with the line of the operation that
// failed, and the parameters cannot be used. Then load them, and the momentum
// if there is any, and go on.
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
#include "absl/types/span.h"
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

class ShardedParameters;

// An emulated connection: each device's part of an AllReduce takes this much
// longer, as a sleep that needs no core.
struct EmulatedLink {
  double seconds = 0;  // for each AllReduce
  double bytes_per_second = 1e9;
};

// What each device holds a shard of: this, and what is before it.
enum class Shard { kNone, kOptimizer, kGradients, kParameters };

// What a device's memory is for in a step, in bytes.
struct MemoryUse {
  std::int64_t parameters = 0;   // and buffers; or shards and what is gathered
  std::int64_t gradients = 0;    // in buckets, and their shards
  std::int64_t optimizer = 0;    // momentum
  std::int64_t activations = 0;  // what the forward pass keeps for the way back
  std::int64_t temporaries = 0;  // what the peak has besides

  std::int64_t peak() const {
    return parameters + gradients + optimizer + activations + temporaries;
  }
};

struct DataParallelOptions {
  Shard shard = Shard::kNone;
  AllReduceAlgorithm allreduce = AllReduceAlgorithm::kSplit;
  // For each device, of all processes, see ShardSizes; evenly if there are
  // none.
  std::vector<int> split;
  // Whether buckets are added up while gradients are computed, or afterwards.
  bool overlap = true;
  // How many steps may have been requested and not be done; at least 1.
  int max_in_flight = 2;
  // A bucket is full when it has so many bytes. The first is small, so that the
  // communication begins early.
  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  std::optional<EmulatedLink> emulated_link;
  // Whether each Step restarts its devices' peaks of memory, for memory().
  bool measure_memory = false;
  // How many processes train together, and which this is: its device i is
  // number `process` * devices + i of all.
  int processes = 1;
  int process = 0;
  // A collective of a tensor of each of this process's devices and those of the
  // others, all of which call it in the same order. None: collective.h's, of
  // one process, by the algorithm above.
  std::function<Work(Collective, Replicas, SourceLocation)> collective;
};

class DataParallel : public nn::Module {
 public:
  // device_ids: numbers of devices in the table (Devices()); all if there are
  // none. The net is moved to the first, if need be, and cloned to the others.
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
    // Of each of this process's shards that has samples, where it was computed;
    // see JoinShards.
    std::vector<Tensor> outputs;
  };
  // One step of training with a batch, by nn::CrossEntropyLoss. Asynchronous.
  Result Step(const Tensor& x, const Tensor& labels,
              const nn::SGDOptions& options,
              SourceLocation at = SourceLocation::Current());

  nn::Module& module() { return replica(0); }
  // On devices()[i]; 0 is the module.
  nn::Module& replica(int i);
  const std::vector<Device>& devices() const { return devices_; }
  const DataParallelOptions& options() const { return options_; }

  // The optimiser of the module. Its momentum may be read and written.
  nn::SGD& sgd();

  // On devices()[i], in the last step, measured by the allocator, without what
  // is not the network's; see measure_memory. Waits for the device.
  MemoryUse memory(int i, SourceLocation at = SourceLocation::Current());
  // What a formula says, which has 4 bytes for each float32 parameter, as many
  // for its gradient and its momentum, or a shard of them, and two places of
  // the longest bucket for what is gathered or added up. Of the layers' values
  // it knows what it is told.
  MemoryUse PredictMemory(int i, std::int64_t activations,
                          std::int64_t temporaries, bool momentum) const;

  // This process's part of a batch: rows [begin, begin + the sum of the sizes).
  struct Share {
    std::int64_t begin = 0;
    std::vector<std::int64_t> sizes;  // of the devices' shards
  };
  Share ShareOf(std::int64_t samples) const;

 private:
  // What a device updates of a parameter: all, or elements of it, perhaps none.
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
    std::vector<std::uint64_t> versions;  // of the state, when all were equal
    std::vector<Piece> pieces;            // of each parameter
    nn::SGD sgd{{}, {/*lr=*/0}};          // of them
    std::shared_ptr<ShardedParameters> sharded;  // null unless kParameters
    // Bytes of the last step; `others` are not the network's.
    std::int64_t activations = 0, others = 0;

    void FindTensors();  // of the net
  };
  // Where a parameter's gradient is.
  struct Place {
    std::size_t bucket;
    std::int64_t offset;
  };
  // Gradients of some parameters, one behind the other; in the last one the
  // loss comes behind them.
  struct Bucket {
    std::vector<int> parameters;
    std::int64_t numel = 0;
    DType dtype = DType::kFloat32;
  };
  // A device's part of a step.
  struct Pass;

  void CheckOptions();
  void MakeBuckets();
  // What of a bucket a device updates: [begin, end), all if nothing is sharded.
  std::pair<std::int64_t, std::int64_t> ShardOf(std::size_t bucket,
                                                std::size_t device) const;
  void MakePieces(std::size_t device);
  // Has the replicas' parameters be lent, and shards_ be what there is.
  void LendParameters();
  // Writes the module's parameters to the shards.
  void Scatter(SourceLocation at);
  // Has gathers wait for what the current streams write to the shards; or these
  // for gathers.
  void Order(bool written, SourceLocation at);
  Event GatherBucket(std::size_t device, std::size_t bucket,
                     const Tensor& whole);
  // Of tensors like the parameters, of which each device has its pieces: all,
  // where there is a place for it.
  using OfParameter =
      absl::FunctionRef<Tensor(std::size_t device, std::size_t parameter)>;
  void GatherPieces(OfParameter piece, OfParameter whole, SourceLocation at);
  void CheckBatch(const Tensor& x, SourceLocation at) const;
  // Checks that the replicas are what they were, and copies what was written to
  // the module since.
  void FollowModule(SourceLocation at);
  // The optimiser that sgd() has shown since the last call; or null.
  nn::SGD* shown_sgd();
  // Of its momentum, ids and versions.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> MomentumVersions();
  void CopyToReplicas(SourceLocation at);
  void CopyMomentum(SourceLocation at);
  void RememberVersions();
  void WaitForRoom(SourceLocation at);
  // Has the failure that is being handled reach the parameters of all devices.
  void FailEverywhere(SourceLocation at);
  Result RequestStep(const Tensor& x, const Tensor& labels, SourceLocation at);
  // This process's part of the batch, on its devices.
  std::vector<Tensor> SplitShare(const Tensor& all, const Share& share,
                                 SourceLocation at) const;
  // Requests the forward pass of a shard. Returns the outputs.
  Tensor Forward(std::size_t device, const Tensor& x, const Tensor& labels,
                 double scale, Pass& pass, SourceLocation at);
  // Of a process without samples: some of the others', which do not count. So
  // it writes the buffers that a step writes, and gathers when the others do.
  void ForwardForOthers(const Tensor& x, const Tensor& labels, Pass& pass,
                        SourceLocation at);
  // Goes back until the bucket's gradients are known, and writes them there;
  // those of a device without samples if there is no pass.
  void Fill(std::size_t device, std::size_t bucket, Pass* pass,
            const Tensor& gradients, SourceLocation at);
  // How many buckets' gradients have a place at a time. If not for all, each
  // bucket leaves its place when it has been added up.
  std::size_t places() const;
  bool moves_on() const { return options_.shard >= Shard::kGradients; }
  // The bucket's place on each device; and how many bytes one has.
  std::vector<Tensor> PlaceOf(std::size_t bucket);
  std::int64_t PlaceBytes(std::size_t place) const;
  // What a device holds between steps.
  MemoryUse Held(std::size_t device);
  // sums: of each bucket on each device, or of its shard.
  void Update(const std::vector<std::vector<Tensor>>& sums, SourceLocation at);
  void AverageBuffers(const std::vector<std::int64_t>& sizes,
                      std::int64_t samples, SourceLocation at);
  // The batch's mean loss, on the first device, which the last sums have.
  Tensor Loss(const std::vector<Tensor>& sums, SourceLocation at);
  // Requests it, of one tensor of each device, behind the current streams.
  Work Communicate(Collective collective, const std::vector<Tensor>& tensors,
                   SourceLocation at);
  // Has these streams take as long as a link would for so many bytes each.
  void EmulateLink(absl::Span<const Device> devices, double bytes,
                   SourceLocation at) const;
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
  std::vector<Place> place_of_;  // by parameter
  // Of kParameters, by bucket and device.
  std::vector<std::vector<Tensor>> shards_;
  std::vector<std::vector<StorageRef>> places_;  // by place and device
  std::optional<nn::SGD> whole_sgd_;             // with the gathered momentum
  // Of the momentum, when it was equal.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> momentum_;
  std::deque<std::vector<Event>> in_flight_;  // the ends of steps
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_DATA_PARALLEL_H_
