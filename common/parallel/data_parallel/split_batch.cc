#include "common/parallel/data_parallel/split_batch.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/ops/copy.h"
#include "common/ops/joining.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/views.h"

namespace d2l {
namespace {

constexpr int kMaxWeight = 1000000;

}  // namespace

std::vector<std::int64_t> ShardSizes(std::int64_t samples,
                                     const std::vector<int>& weights) {
  std::int64_t total = 0;
  bool valid = samples >= 0;
  for (const int weight : weights) {
    valid = valid && weight >= 0 && weight <= kMaxWeight;
    total += weight;
  }
  if (!valid || total == 0) {
    throw std::invalid_argument(absl::StrFormat(
        "[ShardSizes] weights from 0 to %d, not all of them 0, wanted; got %s "
        "for %d samples",
        kMaxWeight, absl::StrJoin(weights, ":"), samples));
  }
  // Without samples * weight, which may overflow.
  const std::int64_t each = samples / total, rest = samples % total;
  std::vector<std::int64_t> sizes, lost;
  for (const int weight : weights) {
    sizes.push_back(each * weight + rest * weight / total);
    lost.push_back(rest * weight % total);
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(
      order.begin(), order.end(),
      [&](std::size_t a, std::size_t b) { return lost[a] > lost[b]; });
  std::int64_t left =
      samples - std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  for (std::size_t i = 0; left > 0; ++i, --left) ++sizes[order[i]];
  return sizes;
}

absl::StatusOr<std::vector<int>> ParseSplit(absl::string_view text,
                                            int devices) {
  std::vector<int> weights;
  std::int64_t total = 0;
  for (const absl::string_view part : absl::StrSplit(text, ':')) {
    int weight = 0;
    if (!absl::SimpleAtoi(part, &weight) || weight < 0 || weight > kMaxWeight) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "the split \"%s\" is not a list of weights from 0 to %d, one for "
          "each device, such as 3:1",
          text, kMaxWeight));
    }
    weights.push_back(weight);
    total += weight;
  }
  if (static_cast<int>(weights.size()) != devices) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the split \"%s\" has %d weight%s for %d device%s; write one for each, "
        "such as %s",
        text, weights.size(), weights.size() == 1 ? "" : "s", devices,
        devices == 1 ? "" : "s",
        absl::StrJoin(std::vector<int>(devices, 1), ":")));
  }
  if (total == 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the split \"%s\" gives no device any work; write at least one weight "
        "that is not 0",
        text));
  }
  return weights;
}

std::vector<Tensor> SplitBatch(const Tensor& x,
                               absl::Span<const Device> devices,
                               absl::Span<const std::int64_t> sizes,
                               SourceLocation at) {
  CheckDefined("SplitBatch", x, at);
  if (x.dim() == 0 || devices.empty()) {
    throw std::invalid_argument(absl::StrFormat(
        "[SplitBatch] a tensor with rows and at least one device wanted; got "
        "%s and %d devices; requested at %s",
        x.Describe(), devices.size(), at.ToString()));
  }
  std::vector<std::int64_t> rows(sizes.begin(), sizes.end());
  if (rows.empty()) {
    rows = ShardSizes(x.size(0), std::vector<int>(devices.size(), 1));
  }
  const bool negative =
      std::any_of(rows.begin(), rows.end(), [](auto n) { return n < 0; });
  const std::int64_t total =
      std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  if (rows.size() != devices.size() || negative || total != x.size(0)) {
    throw std::invalid_argument(absl::StrFormat(
        "[SplitBatch] shards of sizes %s, %d in all, do not split %s among %d "
        "devices: a size for each device wanted, %d in all; requested at %s",
        absl::StrJoin(rows, ", "), total, x.Describe(), devices.size(),
        x.size(0), at.ToString()));
  }
  std::vector<Tensor> shards;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Tensor shard = Slice(x, 0, begin, begin + rows[i], 1, at);
    shards.push_back(To(shard, devices[i], /*non_blocking=*/true, at));
    begin += rows[i];
  }
  return shards;
}

Tensor JoinShards(absl::Span<const Tensor> shards, Device device,
                  SourceLocation at) {
  std::vector<Tensor> parts;
  for (const Tensor& shard : shards) {
    parts.push_back(To(shard, device, /*non_blocking=*/true, at));
  }
  return Cat(parts, 0, at);
}

}  // namespace d2l
