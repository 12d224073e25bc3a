// ShardedParameters: the parameters of one replica when the devices keep only
// shards of them. A bucket is gathered while operations read it.
//
// The parameters' memory is lent (storage.h): it is in one of two slots, each
// as long as the longest bucket. When an operation is about to read a bucket,
// this listener gathers the bucket on the device's communication stream, and
// with it the next one of the pass, while the device computes. If layers are
// used in their order, the device waits only for the first gather.
//
// Used by the thread of the DataParallel, which owns it. A module must use its
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

// Whether the operation that writes x is known to have failed.
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
    std::vector<std::pair<StorageRef, std::int64_t>> parameters;  // and begins
    std::vector<Tensor> shards;  // on all devices
  };
  // Gathers the shards of a bucket into `whole`; returns an event at the end.
  using Gather = std::function<Event(std::size_t bucket, const Tensor& whole)>;

  ShardedParameters(Device device, std::vector<Bucket> buckets, Gather gather);

  void BeforeOp(const Primitive& primitive,
                absl::Span<const Tensor* const> inputs) override;
  void OnOp(const OpRecord&) override {}

  // The direction in which the next passes use the buckets: -1 is from the last
  // to the first, in the forward pass; 1 is backward.
  void set_direction(int direction) { direction_ = direction; }
  // Gathers all buckets, each into its own slot, until Reset. They can be read
  // and written; writes do not reach the shards.
  void GatherAll();
  // Releases all buckets.
  void Reset();

  std::int64_t bytes() const;  // of the slots

 private:
  struct Slot {
    StorageRef memory;
    int bucket = -1;
    Event arrived;           // empty if the current stream has waited for it
    std::uint64_t used = 0;  // when it was last wanted
  };
  std::size_t num_slots() const {
    return std::min<std::size_t>(2, buckets_.size());
  }
  Slot& AddSlot(std::int64_t bytes);
  // Gathers it into a slot whose bucket is not wanted. If there is none, adds a
  // slot if it must, else does nothing.
  void Fetch(int bucket, absl::Span<const int> wanted, bool must);
  void Lend(const Slot& slot, bool lend);

  const Device device_;
  const std::vector<Bucket> buckets_;
  const Gather gather_;
  std::int64_t slot_bytes_ = 0;
  absl::flat_hash_map<const Storage*, int> bucket_of_;
  std::vector<int> slot_of_;  // by bucket; -1: not gathered
  std::vector<Slot> slots_;
  std::uint64_t clock_ = 0;
  int direction_ = -1;
};

// While it lives, operations gather their parameters. Nothing for null.
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
