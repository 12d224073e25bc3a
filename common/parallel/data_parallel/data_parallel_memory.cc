// The memory that a step needs: measured, and by a formula.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/device/device_table.h"
#include "common/parallel/data_parallel/data_parallel.h"

namespace d2l {

MemoryUse DataParallel::Held(std::size_t d) {
  Replica& replica = replicas_[d];
  const auto bytes = [](const std::vector<Tensor>& tensors) {
    std::int64_t sum = 0;
    for (const Tensor& x : tensors) {
      if (x.defined()) sum += static_cast<std::int64_t>(x.storage()->bytes());
    }
    return sum;
  };
  MemoryUse use;
  use.parameters = bytes(replica.state);
  for (const std::vector<StorageRef>& place : places_) {
    use.gradients += static_cast<std::int64_t>(place[d]->bytes());
  }
  use.optimizer = bytes(replica.sgd.momentum_buffers());
  return use;
}

MemoryUse DataParallel::memory(int i, SourceLocation at) {
  Synchronize(devices_[i], at);
  MemoryUse use = Held(i);
  for (std::size_t b = 0; b < buckets_.size() && moves_on(); ++b) {
    const auto [begin, end] = ShardOf(b, i);
    use.gradients += (end - begin) * DTypeSize(buckets_[b].dtype);
  }
  use.activations = replicas_[i].activations;
  const std::int64_t peak =
      Memory(devices_[i]).Stats().peak - replicas_[i].others;
  use.temporaries = std::max<std::int64_t>(0, peak - use.peak());
  return use;
}

MemoryUse DataParallel::PredictMemory(int i, std::int64_t activations,
                                      std::int64_t temporaries,
                                      bool momentum) const {
  std::int64_t all = 0, shard = 0, late = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const std::int64_t size = DTypeSize(buckets_[b].dtype);
    const auto [begin, end] = ShardOf(b, i);
    all += buckets_[b].numel * size;
    shard += (end - begin) * size;
    // When the last gradients are computed, two shards do not exist yet.
    if (b + 2 >= buckets_.size() && moves_on()) late += (end - begin) * size;
  }
  MemoryUse use;
  use.parameters = all;
  for (const auto& [name, buffer] : nn::NamedBuffers(*replicas_[i].net)) {
    use.parameters += buffer.numel() * DTypeSize(buffer.dtype());
  }
  use.gradients = moves_on() ? shard : 0;
  for (std::size_t p = 0; p < places(); ++p) use.gradients += PlaceBytes(p);
  if (momentum) use.optimizer = shard;
  use.activations = activations;
  use.temporaries = std::max<std::int64_t>(0, temporaries - late);
  return use;
}

}  // namespace d2l
