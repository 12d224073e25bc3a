#include "common/parallel/data_parallel/buckets.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/device/device_table.h"
#include "common/tensor/shape.h"

namespace d2l {

Buckets::Buckets(const std::vector<Tensor>& parameters,
                 const std::vector<Device>& devices,
                 const DataParallelOptions& options)
    : devices_(devices), places_(parameters.size()) {
  bool full = true;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const DType dtype = parameters[i].dtype();
    if (full || buckets_.back().dtype != dtype) buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    bucket.dtype = dtype;
    bucket.parameters.push_back(static_cast<int>(i));
    places_[i] = {buckets_.size() - 1, bucket.numel};
    bucket.numel += parameters[i].numel();
    full = bucket.bytes() >= (buckets_.size() == 1 ? options.first_bucket_bytes
                                                   : options.bucket_bytes);
  }
  if (!buckets_.empty()) ++buckets_.back().numel;  // the loss
  num_memories_ = options.shard >= Shard::kGradients
                      ? std::min<std::size_t>(2, buckets_.size())
                      : buckets_.size();
}

std::vector<Tensor> Buckets::MemoryOf(std::size_t bucket) {
  for (std::size_t m = memories_.size(); m < num_memories_; ++m) {
    memories_.emplace_back();
    for (const Device device : devices_) {
      memories_[m].push_back(
          Memory(device).Allocate(BytesOf(m), CurrentStream(device)));
    }
  }
  std::vector<Tensor> tensors;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    tensors.emplace_back(memories_[bucket % num_memories_][d], devices_[d],
                         buckets_[bucket].dtype, Shape{buckets_[bucket].numel});
  }
  return tensors;
}

std::int64_t Buckets::held(std::size_t device) const {
  std::int64_t sum = 0;
  for (const std::vector<StorageRef>& memory : memories_) {
    sum += static_cast<std::int64_t>(memory[device]->bytes());
  }
  return sum;
}

std::int64_t Buckets::needed() const {
  std::int64_t sum = 0;
  for (std::size_t m = 0; m < num_memories_; ++m) sum += BytesOf(m);
  return sum;
}

std::int64_t Buckets::BytesOf(std::size_t memory) const {
  std::int64_t most = 0;
  for (std::size_t b = memory; b < buckets_.size(); b += num_memories_) {
    most = std::max(most, buckets_[b].bytes());
  }
  return most;
}

}  // namespace d2l
