// ShardedParameters: the parameters of one replica of which only shards stay on
// the devices; a bucket of them is whole while operations read it.
//
// The parameters' memory is lent (storage.h): in one of two slots, each as long
// as the longest bucket. While it listens, a bucket is gathered on the device's
// communication stream when an operation is about to read it, and the next one
// of the pass with it, while the device computes. Where layers are used in
// their order, only the first is waited for.
//
// For the thread of the DataParallel, which owns it. A module must use its
// parameters on the current stream.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_SHARDED_PARAMETERS_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_SHARDED_PARAMETERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/event.h"
#include "common/device/memory/memory.h"
#include "common/ops/primitive/record.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor.h"

namespace d2l {

// Whether it is known that what should have written x failed.
inline bool HasFailed(const Tensor& x) {
  Stream* const writer = x.storage()->writer();
  return writer != nullptr &&
         writer->FailureOf(x.storage()->written_by()) != nullptr;
}

class ShardedParameters final : public OpListener {
 public:
  struct Bucket {
    DType dtype;
    std::int64_t numel;
    std::vector<std::pair<StorageRef, std::int64_t>> parameters;  // from where
    std::vector<Tensor> shards;  // on all devices
  };
  // Requests that `whole` becomes the shards of a bucket; gives the end of it.
  using Gather = std::function<Event(std::size_t bucket, const Tensor& whole)>;

  ShardedParameters(Device device, std::vector<Bucket> buckets, Gather gather);

  void BeforeOp(const Primitive& primitive,
                absl::Span<const Tensor* const> inputs) override;
  void OnOp(const OpRecord&) override {}

  // In which the passes to come use the buckets: from the last to the first in
  // the forward pass, -1, and back, 1.
  void set_direction(int direction) { direction_ = direction; }
  // All buckets are here, in as many slots, until Reset: to be read, or written
  // to, which reaches no shard.
  void GatherAll();
  // No bucket is here.
  void Reset();

  std::int64_t bytes() const;  // of the slots

 private:
  struct Slot {
    StorageRef memory;
    int bucket = -1;
    Event arrived;           // empty if the current stream has waited for it
    std::uint64_t used = 0;  // when it was wanted last
  };
  std::size_t num_slots() const {
    return std::min<std::size_t>(2, buckets_.size());
  }
  Slot& AddSlot(std::int64_t bytes);
  // Puts it in a slot of a bucket that is not one of these. If there is none:
  // in a new slot, or, unless it must, nowhere.
  void Fetch(int bucket, absl::Span<const int> wanted, bool must);
  void Lend(const Slot& slot, bool lend);

  const Device device_;
  const std::vector<Bucket> buckets_;
  const Gather gather_;
  std::int64_t slot_bytes_ = 0;
  absl::flat_hash_map<const Storage*, int> bucket_of_;
  std::vector<int> slot_of_;  // by bucket; -1: not here
  std::vector<Slot> slots_;
  std::uint64_t clock_ = 0;
  int direction_ = -1;
};

// While it lives, operations have their parameters gathered; unless null.
class ScopedGathers {
 public:
  ScopedGathers(ShardedParameters* sharded, int direction) {
    if (sharded == nullptr) return;
    sharded->set_direction(direction);
    listen_.emplace(sharded);
  }

 private:
  std::optional<ScopedOpListener> listen_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_SHARDED_PARAMETERS_H_
