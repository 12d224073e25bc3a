// How a batch is split among devices.
//
//   const Device second = Device::Parse("cpu:1");
//   Tensor images = Ones({5, 784});
//   std::vector<Tensor> shards = SplitBatch(images, {Device(), second});
//   // shards[0] is rows 0 to 2 on cpu:0, shards[1] rows 3 and 4 on cpu:1
//   ShardSizes(9, {1, 1, 1, 1});  // 3, 2, 2, 2
//   ShardSizes(256, {3, 1});      // 192, 64
//
// Thread-safety: pure functions. Errors: std::invalid_argument for sizes that
// do not match.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_SPLIT_BATCH_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_SPLIT_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/tensor/tensor.h"

namespace d2l {

// A process's part of a batch: rows [begin, begin + the sum of the sizes).
struct BatchShare {
  std::int64_t begin = 0;
  std::vector<std::int64_t> sizes;  // of its devices' shards
};

// How many of the samples each device gets: in proportion to its weight,
// rounded down. The remaining samples go to the devices that lost most by
// rounding, the first of equals first. With fewer samples than devices, some
// get none. Weights are 0 to 1,000,000, and not all 0.
std::vector<std::int64_t> ShardSizes(std::int64_t samples,
                                     const std::vector<int>& weights);

// The weights in a flag: "3:1". InvalidArgument if they are not as above, or
// not one for each device.
absl::StatusOr<std::vector<int>> ParseSplit(absl::string_view text,
                                            int devices);

// Consecutive rows of x on each device; a view if x is there already. The sizes
// add up to x's rows; without sizes, x is split evenly. A device that gets
// nothing has a tensor without rows. Asynchronous, as To (copy.h).
std::vector<Tensor> SplitBatch(const Tensor& x,
                               absl::Span<const Device> devices,
                               absl::Span<const std::int64_t> sizes = {},
                               SourceLocation at = SourceLocation::Current());

// The reverse: the rows of all shards, none of them empty, on the device.
Tensor JoinShards(absl::Span<const Tensor> shards, Device device,
                  SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_SPLIT_BATCH_H_
