#include "common/parallel/data_parallel/data_parallel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/memory/memory.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/parallel/collective/schedule.h"
#include "common/parallel/data_parallel/step.h"

namespace d2l {
namespace {

std::vector<Device> DevicesOf(const std::vector<int>& ids) {
  const std::vector<DeviceInfo>& table = Devices();
  std::vector<Device> devices;
  for (const int id : ids) {
    if (id < 0 || id >= static_cast<int>(table.size())) {
      std::vector<std::string> known;
      for (std::size_t i = 0; i < table.size(); ++i) {
        known.push_back(
            absl::StrFormat("%d: %s", i, table[i].device.ToString()));
      }
      throw std::invalid_argument(absl::StrFormat(
          "[DataParallel] device_ids %s: there is no device %d; there are %s "
          "(--devices= makes others)",
          absl::StrJoin(ids, ", "), id, absl::StrJoin(known, ", ")));
    }
    if (std::count(ids.begin(), ids.end(), id) > 1) {
      throw std::invalid_argument(absl::StrFormat(
          "[DataParallel] device_ids %s: device %d, %s, is there twice; name "
          "each device once",
          absl::StrJoin(ids, ", "), id, table[id].device.ToString()));
    }
    devices.push_back(table[id].device);
  }
  if (ids.empty()) {
    for (const DeviceInfo& info : table) devices.push_back(info.device);
  }
  return devices;
}

// Throws if options are wrong or do not fit together; fills in the split.
DataParallelOptions Checked(DataParallelOptions options, std::size_t devices) {
  if (options.max_in_flight < 1) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] max_in_flight, the number of steps under way, must be "
        "at least 1; got %d",
        options.max_in_flight));
  }
  if (options.process < 0 || options.process >= options.processes ||
      (options.processes > 1 && !options.collective)) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] process %d of %d wanted, and a function that adds up "
        "for them; got %s",
        options.process, options.processes,
        options.collective ? "both" : "no function: see mpi/mpi_world.h"));
  }
  if (options.shard != Shard::kNone &&
      options.allreduce != AllReduceAlgorithm::kSplit) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] shards are added up by split; got %s; leave it or the "
        "shards out",
        AllReduceAlgorithmName(options.allreduce)));
  }
  const std::size_t ranks = devices * options.processes;
  if (options.split.empty()) options.split.assign(ranks, 1);
  if (options.split.size() != ranks) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] the split %s has %d weight%s for %d device%s",
        absl::StrJoin(options.split, ":"), options.split.size(),
        options.split.size() == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s"));
  }
  ShardSizes(0, options.split);  // throws if they are no weights
  return options;
}

void CheckBatch(const Tensor& x, SourceLocation at) {
  CheckDefined("DataParallel", x, at);
  if (x.dim() > 0 && x.size(0) > 0) return;
  throw std::invalid_argument(absl::StrFormat(
      "[DataParallel] a batch of at least one sample wanted; got %s; requested "
      "at %s",
      x.Describe(), at.ToString()));
}

}  // namespace

DataParallel::DataParallel(std::unique_ptr<nn::Module> net,
                           const std::vector<int>& device_ids,
                           DataParallelOptions options)
    : options_(Checked(std::move(options), DevicesOf(device_ids).size())),
      all_(DevicesOf(device_ids), options_),
      replicas_(std::move(net), devices()),
      buckets_(replicas_[0].parameters, devices(), options_),
      shards_(options_.shard, &replicas_, &buckets_, all_),
      activations_(devices().size()),
      others_(devices().size()) {}

void DataParallel::Members(nn::MemberVisitor& visitor) {
  visitor.Child("module", module());
}

void DataParallel::Train(bool mode) {
  nn::Module::Train(mode);
  for (std::size_t d = 0; d < replicas_.size(); ++d) {
    replicas_[d].net->Train(mode);
  }
}

BatchShare DataParallel::ShareOf(std::int64_t samples) const {
  const std::vector<std::int64_t> all = ShardSizes(samples, options_.split);
  const auto first = all.begin() + all_.RankOf(0);
  return {std::accumulate(all.begin(), first, std::int64_t{0}),
          {first, first + static_cast<std::ptrdiff_t>(devices().size())}};
}

Tensor DataParallel::Forward(const Tensor& x) {
  const SourceLocation at = internal::op_context.requested_by;
  CheckBatch(x, at);
  Follow(at);
  const NoGradGuard guard;
  const std::vector<Tensor> shards =
      options_.processes > 1
          ? SplitBatch(x, devices(), {}, at)
          : SplitBatch(x, devices(), ShardSizes(x.size(0), options_.split), at);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].size(0) == 0) continue;
    outputs.push_back(replicas_[i].net->Forward(shards[i]));
  }
  return JoinShards(outputs, devices()[0], at);
}

DataParallel::Result DataParallel::Step(const Tensor& x, const Tensor& labels,
                                        const nn::SGDOptions& options,
                                        SourceLocation at) {
  const RequestedBy by(at);
  CheckBatch(x, at);
  CheckBatch(labels, at);
  if (labels.size(0) != x.size(0) || buckets_.size() == 0) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] %s; got %s and labels %s; requested at %s",
        buckets_.size() == 0 ? "a module with parameters to train wanted"
                             : "a label for each sample wanted",
        x.Describe(), labels.Describe(), at.ToString()));
  }
  Follow(at);
  WaitForRoom(at);
  for (std::size_t d = 0; d < devices().size() && options_.measure_memory;
       ++d) {
    Memory(devices()[d]).ResetPeak();
    const MemoryStats stats = Memory(devices()[d]).Stats();
    others_[d] =
        stats.allocated + stats.in_flight - Held(static_cast<int>(d)).peak();
  }
  replicas_.CheckValues(at);
  settled_ = false;
  TrainingStep step(options_, all_, &replicas_, &buckets_, shards_, at);
  bool updating = false;
  try {
    step.Run(x, labels, ShareOf(x.size(0)));
    updating = true;
    shards_.Update(step.sums, options, at);
  } catch (const AsyncError&) {
    // The failure came during the requests: other devices would miss it.
    FailEverywhere(at);
    throw;
  } catch (...) {
    buckets_.Release();  // other work may still read them
    if (updating) {      // on some devices
      FailEverywhere(at);
      Settle(at);
    }
    throw;
  }
  std::vector<Event> ends;
  for (const Device device : devices()) {
    ends.push_back(CurrentStream(device).Record());
  }
  in_flight_.push_back(std::move(ends));
  replicas_.Remember();
  activations_ = std::move(step.activations);
  return {std::move(step.loss), std::move(step.outputs)};
}

void DataParallel::WaitForRoom(SourceLocation at) {
  while (static_cast<int>(in_flight_.size()) >= options_.max_in_flight) {
    for (const Event& end : in_flight_.front()) end.Synchronize(at);
    in_flight_.pop_front();
  }
}

void DataParallel::Follow(SourceLocation at) {
  const bool values = replicas_.Follow(at);
  const bool momentum = shards_.MomentumWritten();
  if (values || momentum) {
    // What failed before is overwritten now.
    Settle(at);
    replicas_.CopyFirst(at);
    if (momentum) shards_.CopyMomentum(at);
    replicas_.Remember();
  }
  shards_.Hide();
}

void DataParallel::Settle(SourceLocation at) {
  for (const Device device : devices()) {
    try {
      Synchronize(device, at);
    } catch (const AsyncError&) {  // NOLINT(bugprone-empty-catch)
      // Reading what failed throws it again.
    }
  }
  for (const std::vector<Event>& ends : in_flight_) {
    const bool failed =
        std::any_of(ends.begin(), ends.end(),
                    [](const Event& end) { return end.failure() != nullptr; });
    if (failed) shards_.DropMomentum();
  }
  in_flight_.clear();
  buckets_.Release();
  settled_ = true;
}

void DataParallel::FailEverywhere(SourceLocation at) {
  buckets_.Release();
  replicas_.Fail(std::current_exception(), at);
  replicas_.Remember();
  shards_.DropMomentum();
}

nn::SGD& DataParallel::sgd(SourceLocation at) {
  if (!settled_) Settle(at);
  return shards_.Show(at);
}

// ---- The memory that a step needs: measured, and by a formula.

MemoryUse DataParallel::Held(int i) {
  MemoryUse use;
  for (const Tensor& x : replicas_[i].state) {
    use.parameters += static_cast<std::int64_t>(x.storage()->bytes());
  }
  use.gradients = buckets_.held(i);
  use.optimizer = shards_.momentum_bytes(i);
  return use;
}

MemoryUse DataParallel::memory(int i, SourceLocation at) {
  Synchronize(devices()[i], at);
  MemoryUse use = Held(i);
  for (std::size_t b = 0; b < buckets_.size() && shards_.of_gradients(); ++b) {
    use.gradients +=
        shards_.RangeOf(b, i).numel() * DTypeSize(buckets_[b].dtype);
  }
  use.activations = activations_[i];
  const std::int64_t peak = Memory(devices()[i]).Stats().peak - others_[i];
  use.temporaries = std::max<std::int64_t>(0, peak - use.peak());
  return use;
}

MemoryUse DataParallel::PredictMemory(int i, std::int64_t activations,
                                      std::int64_t temporaries,
                                      bool momentum) const {
  MemoryUse use;
  std::int64_t shard = 0, late = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const std::int64_t size = DTypeSize(buckets_[b].dtype);
    const Shards::Range range = shards_.RangeOf(b, i);
    const std::int64_t bytes = range.numel() * size;
    // Behind the parameters' places in the last bucket is the loss's.
    const std::int64_t end =
        buckets_[b].numel - (b + 1 == buckets_.size() ? 1 : 0);
    use.parameters += end * size;
    if (momentum) {
      use.optimizer += std::max<std::int64_t>(
          0, (std::min(range.end, end) - range.begin) * size);
    }
    shard += bytes;
    // When the last gradients are computed, two shards do not exist yet.
    if (b + 2 >= buckets_.size() && shards_.of_gradients()) late += bytes;
  }
  for (const auto& [name, buffer] : nn::NamedBuffers(*replicas_[i].net)) {
    use.parameters += buffer.numel() * DTypeSize(buffer.dtype());
  }
  use.gradients = buckets_.needed() + (shards_.of_gradients() ? shard : 0);
  use.activations = activations;
  use.temporaries = std::max<std::int64_t>(0, temporaries - late);
  return use;
}

}  // namespace d2l
