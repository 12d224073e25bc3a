#include "common/parallel/data_parallel/sharded_parameters.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "common/device/device_table.h"
#include "common/ops/no_grad.h"
#include "common/ops/primitive/primitive.h"
#include "common/parallel/collective/collective.h"

namespace d2l {

ShardedParameters::ShardedParameters(Device device, std::vector<Bucket> buckets,
                                     Gather gather)
    : device_(device),
      buckets_(std::move(buckets)),
      gather_(std::move(gather)),
      slot_of_(buckets_.size(), -1) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    const std::int64_t size = DTypeSize(bucket.dtype);
    slot_bytes_ = std::max(slot_bytes_, bucket.numel * size);
    for (const auto& [storage, begin] : bucket.parameters) {
      bucket_of_[storage.get()] = static_cast<int>(b);
    }
  }
  for (std::size_t i = 0; i < num_slots(); ++i) AddSlot(slot_bytes_);
}

void ShardedParameters::BeforeOp(const Primitive& primitive,
                                 absl::Span<const Tensor* const> inputs) {
  absl::InlinedVector<int, 4> wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto found = bucket_of_.find(inputs[i]->storage().get());
    if (found == bucket_of_.end()) continue;
    if (!primitive.ReadsInput(static_cast<int>(i))) continue;
    wanted.push_back(found->second);
  }
  if (wanted.empty()) return;
  for (const int b : wanted) {
    if (slot_of_[b] < 0) Fetch(b, wanted, /*must=*/true);
    Slot& slot = slots_[slot_of_[b]];
    CurrentStream(device_).Wait(std::exchange(slot.arrived, Event()));
    slot.used = ++clock_;
  }
  const int next = wanted.back() + direction_;
  if (next < 0 || next >= static_cast<int>(buckets_.size())) return;
  if (slot_of_[next] < 0) Fetch(next, wanted, /*must=*/false);
}

void ShardedParameters::Fetch(int bucket, absl::Span<const int> wanted,
                              bool must) {
  const NoGradGuard guard;
  const Bucket& its = buckets_[bucket];
  const std::int64_t bytes = its.numel * DTypeSize(its.dtype);
  Slot* oldest = nullptr;
  for (Slot& slot : slots_) {
    if (static_cast<std::int64_t>(slot.memory->bytes()) < bytes ||
        std::count(wanted.begin(), wanted.end(), slot.bucket) > 0) {
      continue;
    }
    if (oldest == nullptr || slot.used < oldest->used) oldest = &slot;
  }
  if (oldest == nullptr && must) oldest = &AddSlot(bytes);
  if (oldest == nullptr) return;
  Lend(*oldest, false);
  oldest->bucket = bucket;
  oldest->used = ++clock_;
  slot_of_[bucket] = static_cast<int>(oldest - slots_.data());
  // Behind all work that reads the old contents.
  CommunicationStream(device_).Wait(CurrentStream(device_).Record());
  oldest->arrived =
      gather_(bucket, Tensor(oldest->memory, device_, its.dtype, {its.numel}));
  Lend(*oldest, true);
}

ShardedParameters::Slot& ShardedParameters::AddSlot(std::int64_t bytes) {
  slots_.emplace_back();
  slots_.back().memory =
      Memory(device_).Allocate(bytes, CurrentStream(device_));
  return slots_.back();
}

void ShardedParameters::Lend(const Slot& slot, bool lend) {
  if (slot.bucket < 0) return;
  if (!lend) slot_of_[slot.bucket] = -1;
  const Bucket& bucket = buckets_[slot.bucket];
  const Storage* written = slot.memory.get();
  // A copy must not hide an earlier failure.
  for (const Tensor& shard : bucket.shards) {
    if (HasFailed(shard)) written = shard.storage().get();
  }
  char* const data = static_cast<char*>(slot.memory->data());
  const std::int64_t size = DTypeSize(bucket.dtype);
  for (const auto& [storage, begin] : bucket.parameters) {
    storage->Lend(lend ? data + begin * size : nullptr, *written);
  }
}

void ShardedParameters::GatherAll() {
  std::vector<int> all(buckets_.size());
  std::iota(all.begin(), all.end(), 0);
  for (const int b : all) {
    if (slot_of_[b] < 0) Fetch(b, all, /*must=*/true);
  }
  for (Slot& slot : slots_) {
    CurrentStream(device_).Wait(std::exchange(slot.arrived, Event()));
  }
}

void ShardedParameters::Reset() {
  for (Slot& slot : slots_) {
    Lend(slot, false);
    slot.bucket = -1;
  }
  if (slots_.size() > num_slots()) slots_.resize(num_slots());
}

std::int64_t ShardedParameters::bytes() const {
  std::int64_t sum = 0;
  for (const Slot& slot : slots_) {
    sum += static_cast<std::int64_t>(slot.memory->bytes());
  }
  return sum;
}

}  // namespace d2l
