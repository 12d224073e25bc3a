// The devices' pieces, and the exchange of them.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "common/device/device_table.h"
#include "common/ops/no_grad.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/schedule.h"
#include "common/parallel/data_parallel/data_parallel.h"

namespace d2l {
namespace {

// Behind collectives; not their own stream, which an emulated link would hold
// up.
Stream& BucketStream(Device device) { return CommunicationStream(device, 1); }

// Whether the operation that writes x is known to have failed.
bool HasFailed(const Tensor& x) {
  Stream* const writer = x.storage()->writer();
  return writer != nullptr &&
         writer->FailureOf(x.storage()->written_by()) != nullptr;
}

}  // namespace

Tensor DataParallel::Piece::Of(const Tensor& whole, SourceLocation at) const {
  return Slice(Reshape(whole, {-1}, at), 0, begin, begin + x.numel(), 1, at);
}

std::pair<std::int64_t, std::int64_t> DataParallel::ShardOf(
    std::size_t b, std::size_t d) const {
  if (!sharded()) return {0, buckets_[b].numel};
  const int rank = RankOf(d);
  return {ChunkBegin(buckets_[b].numel, ranks(), rank),
          ChunkBegin(buckets_[b].numel, ranks(), rank + 1)};
}

void DataParallel::MakePieces(std::size_t d) {
  Replica& replica = replicas_[d];
  const NoGradGuard guard;
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < replica.parameters.size(); ++i) {
    const Tensor& parameter = replica.parameters[i];
    const auto [b, offset] = place_of_[i];
    const auto [from, to] = ShardOf(b, d);
    const std::int64_t begin = std::max(offset, from);
    const std::int64_t end = std::min(offset + parameter.numel(), to);
    Piece& piece = replica.pieces.emplace_back();
    piece.x = parameter;
    if (begin < end) piece.begin = begin - offset, piece.offset = begin - from;
    if (sharded()) {
      piece.x = Slice(Reshape(parameter, {-1}), 0, piece.begin,
                      piece.begin + std::max<std::int64_t>(0, end - begin));
    }
    tensors.push_back(piece.x);
  }
  replica.sgd = nn::SGD(std::move(tensors), {/*lr=*/0});
}

nn::SGD& DataParallel::sgd() {
  if (shown_sgd() != nullptr) return *shown_sgd();
  const auto at = SourceLocation::Current();
  const std::vector<Tensor>& parameters = replicas_[0].parameters;
  whole_sgd_.emplace(parameters, replicas_[0].sgd.options());
  const NoGradGuard guard;
  std::vector<Tensor>& whole = whole_sgd_->momentum_buffers();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    // Momentum that failed counts as missing; it may be loaded.
    const auto is_there = [i](Replica& replica) {
      const Tensor& v = replica.sgd.momentum_buffers()[i];
      return v.defined() && !HasFailed(v);
    };
    if (!std::all_of(replicas_.begin(), replicas_.end(), is_there)) continue;
    whole[i] = Empty(parameters[i].shape(), devices_[0], parameters[i].dtype());
  }
  GatherPieces(
      [&](std::size_t d, std::size_t i) {
        return whole[i].defined() ? replicas_[d].sgd.momentum_buffers()[i]
                                  : Tensor();
      },
      [&](std::size_t d, std::size_t i) {
        return d == 0 ? whole[i] : Tensor();
      },
      at);
  momentum_ = MomentumVersions();
  return *whole_sgd_;
}

void DataParallel::GatherPieces(OfParameter piece, OfParameter whole,
                                SourceLocation at) {
  const NoGradGuard guard;
  std::vector<std::vector<Tensor>> buckets(buckets_.size());
  std::vector<Work> gathers(buckets_.size());
  const auto in_bucket = [&](std::size_t d, int i, std::int64_t begin,
                             std::int64_t end) {
    const auto [b, offset] = place_of_[i];
    return Slice(buckets[b][d], 0, offset + begin, offset + end, 1, at);
  };
  std::size_t done = 0;
  const auto take = [&](std::size_t bucket) {
    for (; done < bucket; ++done) {
      gathers[done].Wait(at);
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        for (const int i : buckets_[done].parameters) {
          const Tensor to = whole(d, i);
          if (!to.defined()) continue;
          CopyTo(Reshape(in_bucket(d, i, 0, to.numel()), to.shape(), at), to,
                 /*non_blocking=*/true, at);
        }
      }
    }
  };
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const std::vector<int>& parameters = buckets_[b].parameters;
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](int i) { return piece(0, i).defined(); })) {
      continue;
    }
    take(std::max(b + 1, places()) - places());
    buckets[b] = PlaceOf(b);
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      for (const int i : parameters) {
        const Tensor x = piece(d, i);
        if (!x.defined()) continue;
        const Piece& its = replicas_[d].pieces[i];
        CopyTo(x, in_bucket(d, i, its.begin, its.begin + x.numel()),
               /*non_blocking=*/true, at);
      }
    }
    gathers[b] = Communicate(Collective::kAllGather, buckets[b], at);
  }
  take(buckets_.size());
}

Work DataParallel::Communicate(Collective collective,
                               const std::vector<Tensor>& tensors,
                               SourceLocation at) {
  if (ranks() == 1) return {};
  std::deque<StreamGuard> guards;
  for (const Device device : devices_) {
    Stream& stream = BucketStream(device);
    stream.Wait(CurrentStream(device).Record(), at);
    guards.emplace_back(stream);
  }
  const bool all = collective == Collective::kAllReduce;
  (options_.collective ? options_.collective(collective, tensors, at)
   : all               ? AllReduceAsync(tensors, options_.allreduce, at)
   : collective == Collective::kReduceScatter ? ReduceScatterAsync(tensors, at)
                                              : AllGatherAsync(tensors, at))
      .Wait(at);
  EmulateLink(static_cast<double>(tensors[0].numel()) *
                  DTypeSize(tensors[0].dtype()) * (all ? 2 : 1) *
                  (ranks() - 1) / ranks(),
              at);
  std::vector<std::pair<Device, Event>> ends;
  for (const Device device : devices_) {
    ends.emplace_back(device, BucketStream(device).Record());
  }
  return Work(std::move(ends));
}

void DataParallel::EmulateLink(double bytes, SourceLocation at) const {
  if (!options_.emulated_link.has_value()) return;
  const std::chrono::duration<double> time(
      options_.emulated_link->seconds +
      bytes / options_.emulated_link->bytes_per_second);
  for (const Device device : devices_) {
    CurrentStream(device).HostCallback(
        [time] { std::this_thread::sleep_for(time); }, at);
  }
}

}  // namespace d2l
