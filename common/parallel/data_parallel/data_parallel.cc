#include "common/parallel/data_parallel/data_parallel.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/autograd/tape.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/parallel/collective/schedule.h"
#include "common/parallel/data_parallel/split_batch.h"

namespace d2l {
namespace {

std::vector<Device> DevicesOf(const std::vector<int>& ids) {
  const std::vector<DeviceInfo>& table = Devices();
  std::vector<Device> devices;
  for (const int id : ids) {
    if (id < 0 || id >= static_cast<int>(table.size())) {
      std::vector<std::string> there;
      for (std::size_t i = 0; i < table.size(); ++i) {
        there.push_back(
            absl::StrFormat("%d: %s", i, table[i].device.ToString()));
      }
      throw std::invalid_argument(absl::StrFormat(
          "[DataParallel] device_ids %s: there is no device %d; there are %s "
          "(--devices= makes others)",
          absl::StrJoin(ids, ", "), id, absl::StrJoin(there, ", ")));
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

}  // namespace

DataParallel::DataParallel(std::unique_ptr<nn::Module> net,
                           const std::vector<int>& device_ids,
                           DataParallelOptions options)
    : options_(std::move(options)), devices_(DevicesOf(device_ids)) {
  CheckOptions();
  nn::To(*net, devices_[0]);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Replica& replica = replicas_.emplace_back();
    replica.net =
        i == 0 ? std::move(net) : nn::Clone(*replicas_[0].net, devices_[i]);
    replica.FindTensors();
    if (i == 0) MakeBuckets();
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) MakePieces(i);
  RememberVersions();
}

void DataParallel::Replica::FindTensors() {
  parameters = nn::Parameters(*net);
  state.clear();
  for (const auto& [name, x] : nn::NamedState(*net)) state.push_back(x);
}

void DataParallel::CheckOptions() {
  if (options_.max_in_flight < 1) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] max_in_flight, the number of steps under way, must be "
        "at least 1; got %d",
        options_.max_in_flight));
  }
  if (options_.process < 0 || options_.process >= options_.processes ||
      (options_.processes > 1 && !options_.collective)) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] process %d of %d wanted, and a function that adds up "
        "for them; got %s",
        options_.process, options_.processes,
        options_.collective ? "both" : "no function: see mpi/mpi_world.h"));
  }
  if (sharded() && options_.allreduce != AllReduceAlgorithm::kSplit) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] shards are added up by split; got %s; leave it or the "
        "shards out",
        AllReduceAlgorithmName(options_.allreduce)));
  }
  if (options_.split.empty()) options_.split.assign(ranks(), 1);
  if (static_cast<int>(options_.split.size()) != ranks()) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] the split %s has %d weight%s for %d device%s",
        absl::StrJoin(options_.split, ":"), options_.split.size(),
        options_.split.size() == 1 ? "" : "s", ranks(),
        ranks() == 1 ? "" : "s"));
  }
  ShardSizes(0, options_.split);  // throws if they are no weights
}

void DataParallel::MakeBuckets() {
  const std::vector<Tensor>& parameters = replicas_[0].parameters;
  place_of_.resize(parameters.size());
  bool full = true;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const DType dtype = parameters[i].dtype();
    if (sharded() && !parameters[i].is_contiguous()) {
      throw std::invalid_argument(absl::StrFormat(
          "[DataParallel] contiguous parameters wanted, to shard them; got %s "
          "with strides %s; make it Contiguous(x) before",
          parameters[i].Describe(), parameters[i].strides().ToString()));
    }
    if (full || buckets_.back().dtype != dtype) {
      buckets_.emplace_back();
    }
    Bucket& bucket = buckets_.back();
    bucket.dtype = dtype;
    bucket.parameters.push_back(static_cast<int>(i));
    place_of_[i] = {buckets_.size() - 1, bucket.numel};
    bucket.numel += parameters[i].numel();
    full = bucket.numel * static_cast<std::int64_t>(DTypeSize(dtype)) >=
           (buckets_.size() == 1 ? options_.first_bucket_bytes
                                 : options_.bucket_bytes);
  }
  if (!buckets_.empty()) ++buckets_.back().numel;  // the loss
}

void DataParallel::Members(nn::MemberVisitor& visitor) {
  visitor.Child("module", module());
}

void DataParallel::Train(bool mode) {
  nn::Module::Train(mode);
  for (Replica& replica : replicas_) replica.net->Train(mode);
}

void DataParallel::CheckBatch(const Tensor& x, SourceLocation at) const {
  CheckDefined("DataParallel", x, at);
  if (x.dim() > 0 && x.size(0) > 0) return;
  throw std::invalid_argument(absl::StrFormat(
      "[DataParallel] a batch of at least one sample wanted; got %s; requested "
      "at %s",
      x.Describe(), at.ToString()));
}

DataParallel::Share DataParallel::ShareOf(std::int64_t samples) const {
  const std::vector<std::int64_t> all = ShardSizes(samples, options_.split);
  const auto first =
      all.begin() +
      options_.process * static_cast<std::ptrdiff_t>(devices_.size());
  return {std::accumulate(all.begin(), first, std::int64_t{0}),
          {first, first + static_cast<std::ptrdiff_t>(devices_.size())}};
}

Tensor DataParallel::Forward(const Tensor& x) {
  const SourceLocation at = internal::op_context.requested_by;
  CheckBatch(x, at);
  FollowModule(at);
  const NoGradGuard guard;
  const std::vector<Tensor> shards =
      options_.processes > 1
          ? SplitBatch(x, devices_, {}, at)
          : SplitBatch(x, devices_, ShardSizes(x.size(0), options_.split), at);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].size(0) == 0) continue;
    outputs.push_back(replicas_[i].net->Forward(shards[i]));
  }
  return JoinShards(outputs, devices_[0], at);
}

void DataParallel::FollowModule(SourceLocation at) {
  bool written = false;
  for (const Replica& replica : replicas_) {
    const auto named = nn::NamedState(*replica.net);
    for (std::size_t i = 0; i < replica.state.size(); ++i) {
      const Tensor& kept = replica.state[i];
      const Tensor* now = i < named.size() ? &named[i].second : nullptr;
      if (now == nullptr || !IsSameView(*now, kept)) {
        throw std::invalid_argument(absl::StrFormat(
            "[DataParallel] %s of the module was %s after the DataParallel was "
            "made, which updates the tensor that it found, %s; write into that "
            "one (nn::LoadStateDict, CopyTo), or make a DataParallel of the "
            "changed module; requested at %s",
            now == nullptr ? "a tensor" : named[i].first,
            now == nullptr ? "removed"
            : now->device() != kept.device()
                ? absl::StrCat("moved to ", now->device().ToString())
                : "replaced",
            kept.Describe(), at.ToString()));
      }
      written = written || kept.version() != replica.versions[i];
    }
  }
  const bool momentum =
      shown_sgd() != nullptr && MomentumVersions() != momentum_;
  if (written || momentum) CopyToReplicas(at);
  if (momentum) CopyMomentum(at);
  whole_sgd_.reset();
  if (written || momentum) RememberVersions();
}

nn::SGD* DataParallel::shown_sgd() {
  if (!sharded()) return &replicas_[0].sgd;
  return whole_sgd_.has_value() ? &*whole_sgd_ : nullptr;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>>
DataParallel::MomentumVersions() {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> versions;
  if (shown_sgd() == nullptr) return versions;
  for (const Tensor& x : shown_sgd()->momentum_buffers()) {
    versions.emplace_back(x.defined() ? x.id() : 0,
                          x.defined() ? x.version() : 0);
  }
  return versions;
}

void DataParallel::CopyToReplicas(SourceLocation at) {
  // Clears earlier failures, whose results are overwritten now.
  for (const Device device : devices_) {
    try {
      Synchronize(device, at);
    } catch (const AsyncError&) {  // NOLINT(bugprone-empty-catch)
    }
  }
  in_flight_.clear();
  places_.clear();
  const NoGradGuard guard;
  const std::vector<Tensor>& from = replicas_[0].state;
  for (std::size_t d = 1; d < replicas_.size(); ++d) {
    const std::vector<Tensor>& to = replicas_[d].state;
    for (std::size_t i = 0; i < to.size(); ++i) {
      CopyTo(from[i], to[i], /*non_blocking=*/true, at);
    }
  }
}

void DataParallel::CopyMomentum(SourceLocation at) {
  const NoGradGuard guard;
  const std::vector<Tensor>& whole = sgd().momentum_buffers();
  for (std::size_t d = sharded() ? 0 : 1; d < replicas_.size(); ++d) {
    Replica& replica = replicas_[d];
    for (std::size_t i = 0; i < whole.size(); ++i) {
      Tensor& copy = replica.sgd.momentum_buffers()[i];
      copy = Tensor();
      if (!whole[i].defined()) continue;
      const Piece& piece = replica.pieces[i];
      copy = Empty(piece.x.shape(), devices_[d], whole[i].dtype(), at);
      CopyTo(Reshape(piece.Of(whole[i], at), piece.x.shape(), at), copy,
             /*non_blocking=*/true, at);
    }
  }
}

void DataParallel::RememberVersions() {
  for (Replica& replica : replicas_) {
    replica.versions.clear();
    for (const Tensor& x : replica.state) {
      replica.versions.push_back(x.version());
    }
  }
  momentum_ = MomentumVersions();
}

}  // namespace d2l
