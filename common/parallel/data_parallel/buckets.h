// Buckets: the gradients of several parameters one behind the other, to be
// added up among the devices together.
//
//   Buckets buckets(parameters, {cpu0, cpu1}, options);
//   const auto [bucket, offset] = buckets.place_of(0);  // of a gradient
//   std::vector<Tensor> g = buckets.MemoryOf(bucket);  // one on each device
//
// Gradients become known from the last parameter to the first, and fill the
// buckets in this order. In the last bucket, the loss follows them.
//
// For the thread of a DataParallel.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_BUCKETS_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_BUCKETS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/device/device.h"
#include "common/device/memory/memory.h"
#include "common/parallel/data_parallel/options.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor.h"

namespace d2l {

struct Bucket {
  std::vector<int> parameters;  // their numbers, in falling order
  std::int64_t numel = 0;
  DType dtype = DType::kFloat32;

  std::int64_t bytes() const {
    return numel * static_cast<std::int64_t>(DTypeSize(dtype));
  }
};

class Buckets {
 public:
  // Where a parameter's gradient is: in which bucket, and behind how many
  // elements.
  struct Place {
    std::size_t bucket;
    std::int64_t offset;
  };

  Buckets(const std::vector<Tensor>& parameters,
          const std::vector<Device>& devices,
          const DataParallelOptions& options);

  std::size_t size() const { return buckets_.size(); }
  const Bucket& operator[](std::size_t bucket) const {
    return buckets_[bucket];
  }
  const Place& place_of(std::size_t parameter) const {
    return places_[parameter];
  }

  // How many buckets have memory of their own. With shards of gradients two,
  // and the others use it in turn: a bucket leaves it after it is added up.
  std::size_t num_memories() const { return num_memories_; }
  // The bucket in its memory on each device.
  std::vector<Tensor> MemoryOf(std::size_t bucket);
  // Lets go of the memory, which work that failed may have written.
  void Release() { memories_.clear(); }

  // Bytes on a device: those that it has now, and those of all memories.
  std::int64_t held(std::size_t device) const;
  std::int64_t needed() const;

 private:
  // The length of a memory: that of the longest bucket in it.
  std::int64_t BytesOf(std::size_t memory) const;

  const std::vector<Device> devices_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // by parameter
  std::size_t num_memories_ = 0;
  std::vector<std::vector<StorageRef>> memories_;  // by memory and device
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_BUCKETS_H_
