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
#include "common/parallel/data_parallel/sharded_parameters.h"
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

std::vector<Tensor> WithoutNames(
    const std::vector<std::pair<std::string, Tensor>>& named) {
  std::vector<Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

}  // namespace

DataParallel::DataParallel(std::unique_ptr<nn::Module> net,
                           const std::vector<int>& device_ids,
                           DataParallelOptions options)
    : options_(std::move(options)), devices_(DevicesOf(device_ids)) {
  CheckOptions();
  nn::To(*net, devices_[0]);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    std::unique_ptr<nn::Module> replica =
        i == 0 ? std::move(net) : nn::Clone(*replicas_[0].net, devices_[i]);
    std::vector<Tensor> parameters = nn::Parameters(*replica);
    std::vector<Tensor> state = WithoutNames(nn::NamedState(*replica));
    replicas_.push_back({std::move(replica),
                         std::move(parameters),
                         std::move(state),
                         {},
                         {},
                         nn::SGD({}, {/*lr=*/0}),
                         nullptr});
    if (i == 0) MakeBuckets();
  }
  if (options_.shard == Shard::kParameters) MakeShards();
  for (std::size_t i = 0; i < devices_.size(); ++i) MakePieces(i);
  RememberVersions();
}

void DataParallel::CheckOptions() {
  if (options_.max_in_flight < 1) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] max_in_flight, the number of steps under way, must be "
        "at least 1; got %d",
        options_.max_in_flight));
  }
  if (options_.process < 0 || options_.process >= options_.processes ||
      (options_.processes > 1 && !options_.sum)) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] process %d of %d wanted, and a function that adds up "
        "for them; got %s",
        options_.process, options_.processes,
        options_.sum ? "both" : "no function: see mpi/mpi_world.h"));
  }
  if (options_.shard != Shard::kNone &&
      (options_.sum || options_.allreduce != AllReduceAlgorithm::kSplit)) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] shards are of the devices of one process, added up by "
        "split; got %s; leave the shards out, or the other",
        options_.sum ? "a function that adds up for several processes"
                     : AllReduceAlgorithmName(options_.allreduce)));
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
  bool full = true;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const DType dtype = parameters[i].dtype();
    if (options_.shard != Shard::kNone && !parameters[i].is_contiguous()) {
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
    bucket.numel += parameters[i].numel();
    full = bucket.numel * static_cast<std::int64_t>(DTypeSize(dtype)) >=
           (buckets_.size() == 1 ? options_.first_bucket_bytes
                                 : options_.bucket_bytes);
  }
  if (!buckets_.empty()) ++buckets_.back().numel;  // the loss
}

Tensor DataParallel::Piece::Of(const Tensor& whole, SourceLocation at) const {
  return Slice(Reshape(whole, {-1}, at), 0, begin - offset, end - offset, 1,
               at);
}

std::vector<DataParallel::Piece> DataParallel::PiecesOf(
    std::size_t b, std::int64_t begin, std::int64_t end) const {
  std::vector<Piece> pieces;
  std::int64_t offset = 0;
  for (const int i : buckets_[b].parameters) {
    const std::int64_t next = offset + replicas_[0].parameters[i].numel();
    const std::int64_t from = std::max(begin, offset);
    const std::int64_t to = std::min(end, next);
    if (from < to || (from == to && offset == next)) {
      pieces.push_back({i, b, from, to, offset, Tensor()});
    }
    offset = next;
  }
  return pieces;
}

std::pair<std::int64_t, std::int64_t> DataParallel::ShardOf(
    std::size_t b, std::size_t rank) const {
  const int n = static_cast<int>(devices_.size()), r = static_cast<int>(rank);
  return {ChunkBegin(buckets_[b].numel, n, r),
          ChunkBegin(buckets_[b].numel, n, r + 1)};
}

void DataParallel::MakePieces(std::size_t d) {
  Replica& replica = replicas_[d];
  const NoGradGuard guard;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const bool whole = options_.shard == Shard::kNone;
    const auto [begin, end] =
        whole ? std::pair(std::int64_t{0}, buckets_[b].numel) : ShardOf(b, d);
    for (Piece& piece : PiecesOf(b, begin, end)) {
      const Tensor& parameter = replica.parameters[piece.parameter];
      piece.x =
          whole ? parameter
          : shards_.empty()
              ? piece.Of(parameter, SourceLocation::Current())
              : Slice(shards_[b][d], 0, piece.begin - begin, piece.end - begin);
      replica.pieces.push_back(std::move(piece));
    }
  }
  // In the parameters' order, as sgd() shows them.
  std::stable_sort(
      replica.pieces.begin(), replica.pieces.end(),
      [](const Piece& a, const Piece& b) { return a.parameter < b.parameter; });
  std::vector<Tensor> tensors;
  for (const Piece& piece : replica.pieces) tensors.push_back(piece.x);
  replica.sgd = nn::SGD(std::move(tensors), {/*lr=*/0});
}

void DataParallel::MakeShards() {
  const auto at = SourceLocation::Current();
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    shards_.emplace_back();
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const auto [begin, end] = ShardOf(b, d);
      shards_[b].push_back(
          Empty({end - begin}, devices_[d], buckets_[b].dtype, at));
    }
  }
  Scatter(at);
  // As Members shows them.
  struct : nn::MemberVisitor {
    void Parameter(std::string_view, Tensor& x) override {
      x = Tensor(Storage::Lent(x.numel() * DTypeSize(x.dtype())), x.device(),
                 x.dtype(), x.shape());
    }
  } lend;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Replica& replica = replicas_[d];
    replica.net->Members(lend);
    replica.parameters = nn::Parameters(*replica.net);
    replica.state = WithoutNames(nn::NamedState(*replica.net));
    std::vector<ShardedParameters::Bucket> buckets;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const Bucket& bucket = buckets_[b];
      buckets.push_back({bucket.dtype, bucket.numel, {}, shards_[b]});
      for (const Piece& piece : PiecesOf(b, 0, bucket.numel)) {
        buckets[b].parameters.emplace_back(
            replica.parameters[piece.parameter].storage(), piece.offset);
      }
    }
    replica.sharded = std::make_shared<ShardedParameters>(
        devices_[d], std::move(buckets),
        [this, d](std::size_t b, const Tensor& whole) {
          return GatherBucket(d, b, whole);
        });
  }
}

void DataParallel::Scatter(SourceLocation at) {
  const NoGradGuard guard;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const Tensor& shard = shards_[b][d];
      const std::int64_t from = ShardOf(b, d).first;
      // All of what has failed is to be written.
      if (HasFailed(shard)) {
        CopyTo(Zeros({}, devices_[d], shard.dtype(), at), shard,
               /*non_blocking=*/true, at);
      }
      for (const Piece& piece : PiecesOf(b, from, from + shard.numel())) {
        CopyTo(piece.Of(replicas_[0].parameters[piece.parameter], at),
               Slice(shard, 0, piece.begin - from, piece.end - from, 1, at),
               /*non_blocking=*/true, at);
      }
    }
  }
  ShardsWritten(at);
}

nn::Module& DataParallel::replica(int i) {
  if (replicas_[i].sharded != nullptr) replicas_[i].sharded->GatherAll();
  return *replicas_[i].net;
}

nn::SGD& DataParallel::sgd() {
  if (options_.shard == Shard::kNone) return replicas_[0].sgd;
  if (whole_sgd_.has_value()) return *whole_sgd_;
  const auto at = SourceLocation::Current();
  const std::vector<Tensor>& parameters = replicas_[0].parameters;
  whole_sgd_.emplace(parameters, replicas_[0].sgd.options());
  const NoGradGuard guard;
  std::vector<Tensor>& whole = whole_sgd_->momentum_buffers();
  for (Replica& replica : replicas_) {
    for (std::size_t i = 0; i < replica.pieces.size(); ++i) {
      const Piece& piece = replica.pieces[i];
      const Tensor& v = replica.sgd.momentum_buffers()[i];
      // What failed is not there; it may be loaded.
      if (!v.defined() || HasFailed(v)) continue;
      const Tensor& parameter = parameters[piece.parameter];
      Tensor& its = whole[piece.parameter];
      if (!its.defined()) {
        its = Zeros(parameter.shape(), devices_[0], parameter.dtype(), at);
      }
      CopyTo(v, piece.Of(its, at),
             /*non_blocking=*/true, at);
    }
  }
  RememberMomentum();
  return *whole_sgd_;
}

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
  if (replica.sharded != nullptr) {
    use.parameters += replica.sharded->bytes() - bytes(replica.parameters);
  }
  for (const auto& shards : shards_) use.parameters += bytes({shards[d]});
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
  std::int64_t all = 0, shard = 0, longest = 0, late = 0;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const std::int64_t size = DTypeSize(buckets_[b].dtype);
    const auto [begin, end] = ShardOf(b, i);
    all += buckets_[b].numel * size;
    shard += (end - begin) * size;
    longest = std::max(longest, buckets_[b].numel * size);
    // When the last gradients are computed, two shards are not there.
    if (b + 2 >= buckets_.size() && moves_on()) late += (end - begin) * size;
  }
  MemoryUse use;
  use.parameters = shards_.empty() ? all : shard + 2 * longest;
  if (!shards_.empty() && buckets_.size() == 1) use.parameters -= longest;
  for (const auto& [name, buffer] : nn::NamedBuffers(*replicas_[i].net)) {
    use.parameters += buffer.numel() * DTypeSize(buffer.dtype());
  }
  use.gradients = moves_on() ? shard : 0;
  for (std::size_t p = 0; p < places(); ++p) use.gradients += PlaceBytes(p);
  if (momentum) use.optimizer = options_.shard == Shard::kNone ? all : shard;
  use.activations = activations;
  use.temporaries = std::max<std::int64_t>(0, temporaries - late);
  return use;
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
    const ScopedGathers gathers(replicas_[i].sharded.get(), /*direction=*/-1);
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
  const bool momentum = MomentumChanged();
  if (written || momentum) CopyToReplicas(at);
  if (momentum) CopyMomentum(at);
  whole_sgd_.reset();
  if (written || momentum) RememberVersions();
  for (const Replica& replica : replicas_) {
    if (replica.sharded != nullptr) replica.sharded->Reset();
  }
}

bool DataParallel::MomentumChanged() {
  if (options_.shard != Shard::kNone && !whole_sgd_.has_value()) return false;
  const std::vector<Tensor>& buffers = sgd().momentum_buffers();
  if (buffers.size() != momentum_.size()) return true;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto [id, version] = momentum_[i];
    if (buffers[i].defined()
            ? buffers[i].id() != id || buffers[i].version() != version
            : id != 0) {
      return true;
    }
  }
  return false;
}

void DataParallel::CopyToReplicas(SourceLocation at) {
  // What failed before is overwritten now. Its streams are to run again.
  for (const Device device : devices_) {
    try {
      Synchronize(device, at);
    } catch (const AsyncError&) {  // NOLINT(bugprone-empty-catch)
    }
  }
  in_flight_.clear();
  places_.clear();
  const NoGradGuard guard;
  if (!shards_.empty()) {
    replicas_[0].sharded->GatherAll();
    Scatter(at);
  }
  for (std::size_t d = 0; d < replicas_.size(); ++d) {
    const std::vector<Tensor>& parameters = replicas_[d].parameters;
    for (std::size_t i = 0; i < replicas_[d].state.size() && d > 0; ++i) {
      const Tensor& x = replicas_[d].state[i];
      const bool lent =
          !shards_.empty() && std::any_of(parameters.begin(), parameters.end(),
                                          [&](const Tensor& parameter) {
                                            return parameter.id() == x.id();
                                          });
      if (!lent) CopyTo(replicas_[0].state[i], x, /*non_blocking=*/true, at);
    }
  }
}

void DataParallel::CopyMomentum(SourceLocation at) {
  const NoGradGuard guard;
  const std::vector<Tensor>& whole = sgd().momentum_buffers();
  for (std::size_t d = 0; d < replicas_.size(); ++d) {
    if (d == 0 && options_.shard == Shard::kNone) continue;
    Replica& replica = replicas_[d];
    std::vector<Tensor>& copies = replica.sgd.momentum_buffers();
    copies.clear();
    for (const Piece& piece : replica.pieces) {
      copies.emplace_back();
      const Tensor& v = whole[piece.parameter];
      if (!v.defined()) continue;
      copies.back() = Empty(piece.x.shape(), devices_[d], v.dtype(), at);
      CopyTo(Reshape(piece.Of(v, at), piece.x.shape(), at), copies.back(),
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
  RememberMomentum();
}

void DataParallel::RememberMomentum() {
  momentum_.clear();
  if (options_.shard != Shard::kNone && !whole_sgd_.has_value()) return;
  for (const Tensor& x : sgd().momentum_buffers()) {
    momentum_.emplace_back(x.defined() ? x.id() : 0,
                           x.defined() ? x.version() : 0);
  }
}

}  // namespace d2l
