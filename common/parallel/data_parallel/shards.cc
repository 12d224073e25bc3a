#include "common/parallel/data_parallel/shards.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/ops/no_grad.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {

Shards::Shards(Shard kind, ModuleReplicas* replicas, Buckets* buckets,
               const Communicator& all)
    : kind_(kind), replicas_(*replicas), buckets_(*buckets), all_(all) {
  for (const Tensor& parameter : replicas_[0].parameters) {
    if (!sharded() || parameter.is_contiguous()) continue;
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] contiguous parameters wanted, to shard them; got %s "
        "with strides %s; make it Contiguous(x) before",
        parameter.Describe(), parameter.strides().ToString()));
  }
  for (std::size_t d = 0; d < replicas_.size(); ++d) {
    parts_.push_back(MakePart(d));
  }
}

Shards::Range Shards::RangeOf(std::size_t b, std::size_t d) const {
  const std::int64_t numel = buckets_[b].numel;
  if (!sharded()) return {0, numel};
  const int rank = all_.RankOf(d);
  return {ChunkBegin(numel, all_.ranks(), rank),
          ChunkBegin(numel, all_.ranks(), rank + 1)};
}

Tensor Shards::Piece::Of(const Tensor& whole, SourceLocation at) const {
  return Slice(Reshape(whole, {-1}, at), 0, begin, begin + x.numel(), 1, at);
}

Shards::Part Shards::MakePart(std::size_t d) const {
  Part part;
  const NoGradGuard guard;
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < replicas_[d].parameters.size(); ++i) {
    const Tensor& parameter = replicas_[d].parameters[i];
    const auto [b, offset] = buckets_.place_of(i);
    const Range range = RangeOf(b, d);
    const std::int64_t begin = std::max(offset, range.begin);
    const std::int64_t end = std::min(offset + parameter.numel(), range.end);
    Piece& piece = part.pieces.emplace_back();
    if (begin < end) {
      piece.begin = begin - offset;
      piece.offset = begin - range.begin;
    }
    piece.x = sharded()
                  ? Slice(Reshape(parameter, {-1}), 0, piece.begin,
                          piece.begin + std::max<std::int64_t>(0, end - begin))
                  : parameter;
    tensors.push_back(piece.x);
  }
  part.sgd = nn::SGD(std::move(tensors), {/*lr=*/0});
  return part;
}

void Shards::Update(const std::vector<std::vector<Tensor>>& sums,
                    const nn::SGDOptions& options, SourceLocation at) {
  for (std::size_t d = 0; d < parts_.size(); ++d) {
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < parts_[d].pieces.size(); ++i) {
      const Piece& piece = parts_[d].pieces[i];
      const Tensor& sum = sums[buckets_.place_of(i).bucket][d];
      gradients.push_back(Reshape(
          Slice(sum, 0, piece.offset, piece.offset + piece.x.numel(), 1, at),
          piece.x.shape(), at));
    }
    parts_[d].sgd.options() = options;
    parts_[d].sgd.Step(gradients, at);
  }
  if (!sharded() || all_.ranks() == 1) return;
  Gather(
      [&](std::size_t d, std::size_t i) { return parts_[d].pieces[i].x; },
      [&](std::size_t d, std::size_t i) { return replicas_[d].parameters[i]; },
      at);
}

void Shards::Gather(OfParameter piece, OfParameter whole, SourceLocation at) {
  const NoGradGuard guard;
  std::vector<std::vector<Tensor>> buckets(buckets_.size());
  std::vector<Work> gathers(buckets_.size());
  const auto in_bucket = [&](std::size_t d, int i, std::int64_t begin,
                             std::int64_t end) {
    const auto [b, offset] = buckets_.place_of(i);
    return Slice(buckets[b][d], 0, offset + begin, offset + end, 1, at);
  };
  std::size_t done = 0;
  const auto take = [&](std::size_t bucket) {
    for (; done < bucket; ++done) {
      gathers[done].Wait(at);
      for (std::size_t d = 0; d < parts_.size(); ++d) {
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
    take(std::max(b + 1, buckets_.num_memories()) - buckets_.num_memories());
    buckets[b] = buckets_.MemoryOf(b);
    for (std::size_t d = 0; d < parts_.size(); ++d) {
      for (const int i : parameters) {
        const Tensor x = piece(d, i);
        if (!x.defined()) continue;
        const std::int64_t begin = parts_[d].pieces[i].begin;
        CopyTo(x, in_bucket(d, i, begin, begin + x.numel()),
               /*non_blocking=*/true, at);
      }
    }
    gathers[b] = all_.Run(Collective::kAllGather, buckets[b], at);
  }
  take(buckets_.size());
}

// ---- The momentum.

nn::SGD& Shards::Show(SourceLocation at) {
  if (shown_ != nullptr) return *shown_;
  shown_ = &parts_[0].sgd;
  if (sharded()) {
    const std::vector<Tensor>& parameters = replicas_[0].parameters;
    shown_ = &whole_.emplace(parameters, parts_[0].sgd.options());
    const NoGradGuard guard;
    std::vector<Tensor>& whole = whole_->momentum_buffers();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Tensor& p = parameters[i];
      if (!parts_[0].sgd.momentum_buffers()[i].defined()) continue;
      whole[i] = Empty(p.shape(), p.device(), p.dtype(), at);
    }
    Gather([&](std::size_t d,
               std::size_t i) { return parts_[d].sgd.momentum_buffers()[i]; },
           [&](std::size_t d, std::size_t i) {
             return d == 0 ? whole[i] : Tensor();
           },
           at);
  }
  versions_ = ShownVersions();
  return *shown_;
}

void Shards::Hide() {
  shown_ = nullptr;
  whole_.reset();
}

Shards::Versions Shards::ShownVersions() const {
  Versions versions;
  for (const Tensor& x : shown_->momentum_buffers()) {
    versions.emplace_back(x.defined() ? x.id() : 0,
                          x.defined() ? x.version() : 0);
  }
  return versions;
}

bool Shards::MomentumWritten() const {
  return shown_ != nullptr && ShownVersions() != versions_;
}

void Shards::CopyMomentum(SourceLocation at) {
  const NoGradGuard guard;
  const std::vector<Tensor> whole = shown_->momentum_buffers();
  for (std::size_t d = 0; d < parts_.size(); ++d) {
    std::vector<Tensor>& copies = parts_[d].sgd.momentum_buffers();
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const Piece& piece = parts_[d].pieces[i];
      if (!whole[i].defined()) {
        copies[i] = Tensor();
      } else if (sharded() || d > 0) {
        copies[i] =
            Empty(piece.x.shape(), replicas_[d].device, whole[i].dtype(), at);
        CopyTo(Reshape(piece.Of(whole[i], at), piece.x.shape(), at), copies[i],
               /*non_blocking=*/true, at);
      }
    }
  }
}

void Shards::DropMomentum() {
  for (Part& part : parts_) {
    for (Tensor& x : part.sgd.momentum_buffers()) x = Tensor();
  }
}

std::int64_t Shards::momentum_bytes(std::size_t device) {
  std::int64_t sum = 0;
  for (const Tensor& x : parts_[device].sgd.momentum_buffers()) {
    if (x.defined()) sum += static_cast<std::int64_t>(x.storage()->bytes());
  }
  return sum;
}

}  // namespace d2l
