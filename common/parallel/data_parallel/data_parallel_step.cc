#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/autograd/tape.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/ops/creation.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/split_batch.h"

namespace d2l {
namespace {

// The neutral element: x + -0 is x, also where x is -0.
Tensor NothingToAdd(std::int64_t numel, Device device, DType dtype,
                    SourceLocation at) {
  return Full({numel}, -0.0, device, dtype, at);
}

}  // namespace

struct DataParallel::Pass {
  Pass(const std::vector<Tensor>& parameters, SourceLocation at)
      : tape(parameters, at), gradients(parameters.size()) {}

  GradientTape tape;
  std::vector<Tensor> gradients;  // known, and not in their bucket yet
  Tensor loss;
  bool counts = true;  // whether the gradients are added up
};

DataParallel::Result DataParallel::Step(const Tensor& x, const Tensor& labels,
                                        const nn::SGDOptions& options,
                                        SourceLocation at) {
  const RequestedBy by(at);
  CheckBatch(x, at);
  CheckBatch(labels, at);
  if (labels.size(0) != x.size(0) || buckets_.empty()) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] %s; got %s and labels %s; requested at %s",
        buckets_.empty() ? "a module with parameters to train wanted"
                         : "a label for each sample wanted",
        x.Describe(), labels.Describe(), at.ToString()));
  }
  FollowModule(at);
  for (Replica& replica : replicas_) replica.sgd.options() = options;
  WaitForRoom(at);
  for (std::size_t d = 0; d < devices_.size() && options_.measure_memory; ++d) {
    Memory(devices_[d]).ResetPeak();
    const MemoryStats stats = Memory(devices_[d]).Stats();
    replicas_[d].others = stats.allocated + stats.pending - Held(d).peak();
  }
  const auto check = [at](const Tensor& x) {
    Stream* const writer = x.storage()->writer();
    if (writer == nullptr || !writer->ever_failed()) return;
    ThrowIfFailed(*writer, x.storage()->written_by(), "DataParallel", at);
  };
  for (const Replica& replica : replicas_) {
    for (const Tensor& x : replica.state) check(x);
  }
  Result result;
  try {
    result = RequestStep(x, labels, at);
  } catch (const AsyncError&) {
    // The failure came during the requests: other devices would miss it.
    places_.clear();
    FailEverywhere(at);
    RememberVersions();
    throw;
  } catch (...) {
    places_.clear();  // other work may still read them
    throw;
  }
  RememberVersions();
  return result;
}

void DataParallel::WaitForRoom(SourceLocation at) {
  while (static_cast<int>(in_flight_.size()) >= options_.max_in_flight) {
    const std::vector<Event> step = std::move(in_flight_.front());
    in_flight_.pop_front();
    for (const Event& end : step) end.Synchronize(at);
  }
}

void DataParallel::FailEverywhere(SourceLocation at) {
  const std::exception_ptr error = std::current_exception();
  const NoGradGuard guard;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    CurrentStream(devices_[d])
        .HostCallback([error] { std::rethrow_exception(error); }, at);
    for (Tensor& x : replicas_[d].parameters) {
      try {
        x *= Operand(1.0, at);       // will be skipped
      } catch (const AsyncError&) {  // NOLINT(bugprone-empty-catch)
      }
    }
  }
}

DataParallel::Result DataParallel::RequestStep(const Tensor& x,
                                               const Tensor& labels,
                                               SourceLocation at) {
  const Share share = ShareOf(x.size(0));
  const std::vector<Tensor> xs = SplitShare(x, share, at);
  const std::vector<Tensor> shard_labels = SplitShare(labels, share, at);
  std::vector<std::unique_ptr<Pass>> passes(devices_.size());
  // Tapes end before those that began earlier.
  const absl::Cleanup end = [&passes] {
    while (!passes.empty()) passes.pop_back();
  };
  Result result;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    replicas_[d].activations = 0;
    if (share.sizes[d] == 0) continue;
    passes[d] = std::make_unique<Pass>(replicas_[d].parameters, at);
    const std::int64_t before = Memory(devices_[d]).Stats().allocated;
    result.outputs.push_back(Forward(d, xs[d], shard_labels[d],
                                     1.0 / static_cast<double>(x.size(0)),
                                     *passes[d], at));
    replicas_[d].activations = Memory(devices_[d]).Stats().allocated - before;
  }
  if (result.outputs.empty()) {
    passes[0] = std::make_unique<Pass>(replicas_[0].parameters, at);
    ForwardForOthers(x, labels, *passes[0], at);
  }
  const std::size_t count = buckets_.size();
  const auto reduce =
      sharded() ? Collective::kReduceScatter : Collective::kAllReduce;
  std::vector<std::vector<Tensor>> sums(count);
  std::vector<Work> adding(count);
  std::size_t done = 0;
  // The current streams wait for the buckets before this one.
  const auto await = [&](std::size_t bucket) {
    for (; done < bucket; ++done) {
      adding[done].Wait(at);
      if (!moves_on()) continue;
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        const auto [from, to] = ShardOf(done, d);
        sums[done][d] = Clone(Slice(sums[done][d], 0, from, to, 1, at), at);
      }
    }
  };
  // A bucket that leaves its place cannot be added up later.
  const bool at_once = options_.overlap || moves_on();
  for (std::size_t b = 0; b < count; ++b) {
    await(std::max(b + 1, places()) - places());
    sums[b] = PlaceOf(b);
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      Fill(d, b, passes[d].get(), sums[b][d], at);
    }
    if (at_once) adding[b] = Communicate(reduce, sums[b], at);
    if (!options_.overlap && at_once) await(b + 1);
  }
  for (std::size_t b = 0; b < count && !at_once; ++b) {
    adding[b] = Communicate(reduce, sums[b], at);
  }
  await(count);
  result.loss = Loss(sums.back(), at);
  AverageBuffers(share.sizes, x.size(0), at);
  Update(sums, at);
  return result;
}

std::vector<Tensor> DataParallel::SplitShare(const Tensor& all,
                                             const Share& share,
                                             SourceLocation at) const {
  const std::int64_t end =
      std::accumulate(share.sizes.begin(), share.sizes.end(), share.begin);
  const bool whole = end - share.begin == all.size(0);
  return SplitBatch(whole ? all : Slice(all, 0, share.begin, end, 1, at),
                    devices_, share.sizes, at);
}

Tensor DataParallel::Forward(std::size_t d, const Tensor& x,
                             const Tensor& labels, double scale, Pass& pass,
                             SourceLocation at) {
  const Tensor outputs = replicas_[d].net->Forward(x);
  const Tensor sum = nn::CrossEntropyLoss(outputs, labels, nn::Reduction::kSum);
  const Tensor seed = FullLike(sum, scale, at);
  pass.loss = Operand(Detach(sum, at), at) * Operand(seed, at);
  // The tape records nothing of the other devices' passes.
  pass.tape.Begin(sum, seed, at);
  return outputs;
}

void DataParallel::ForwardForOthers(const Tensor& x, const Tensor& labels,
                                    Pass& pass, SourceLocation at) {
  pass.counts = false;
  const GeneratorState before = GetGeneratorState(devices_[0]);
  // Two samples: batch normalisation refuses a single value per channel.
  const std::int64_t rows = std::min<std::int64_t>(2, x.size(0));
  const auto first = [&](const Tensor& all) {
    return To(Slice(all, 0, 0, rows, 1, at), devices_[0], true, at);
  };
  Forward(0, first(x), first(labels), /*scale=*/1, pass, at);
  SetGeneratorState(before, devices_[0]);
}

void DataParallel::Fill(std::size_t d, std::size_t b, Pass* pass,
                        const Tensor& gradients, SourceLocation at) {
  const bool counts = pass != nullptr && pass->counts;
  if (!counts) {
    const NoGradGuard guard;
    CopyTo(NothingToAdd(1, devices_[d], gradients.dtype(), at), gradients,
           /*non_blocking=*/true, at);
  }
  if (pass == nullptr) return;
  std::int64_t begin = 0;
  const auto add = [&](const Tensor& x) {
    if (!counts) return;
    const NoGradGuard guard;
    const std::int64_t end = begin + x.numel();
    CopyTo(Reshape(x, {-1}, at), Slice(gradients, 0, begin, end, 1, at),
           /*non_blocking=*/true, at);
    begin = end;
  };
  for (const int i : buckets_[b].parameters) {
    while (!pass->gradients[i].defined()) {
      GradientTape::Gradient next = *pass->tape.Next();
      pass->gradients[next.watched] = std::move(next.value);
    }
    add(std::exchange(pass->gradients[i], Tensor()));
  }
  if (b + 1 == buckets_.size()) add(pass->loss);
}

std::size_t DataParallel::places() const {
  return moves_on() ? std::min<std::size_t>(2, buckets_.size())
                    : buckets_.size();
}

std::int64_t DataParallel::PlaceBytes(std::size_t place) const {
  std::int64_t most = 0;
  for (std::size_t b = place; b < buckets_.size(); b += places()) {
    most = std::max<std::int64_t>(
        most, buckets_[b].numel * DTypeSize(buckets_[b].dtype));
  }
  return most;
}

std::vector<Tensor> DataParallel::PlaceOf(std::size_t b) {
  for (std::size_t p = places_.size(); p < places(); ++p) {
    places_.emplace_back();
    for (const Device device : devices_) {
      places_[p].push_back(
          Memory(device).Allocate(PlaceBytes(p), CurrentStream(device)));
    }
  }
  std::vector<Tensor> tensors;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    tensors.emplace_back(places_[b % places()][d], devices_[d],
                         buckets_[b].dtype, Shape{buckets_[b].numel});
  }
  return tensors;
}

void DataParallel::Update(const std::vector<std::vector<Tensor>>& sums,
                          SourceLocation at) {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Replica& replica = replicas_[d];
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < replica.pieces.size(); ++i) {
      const Piece& piece = replica.pieces[i];
      const std::size_t b = place_of_[i].bucket;
      const std::int64_t begin =
          piece.offset + (moves_on() ? 0 : ShardOf(b, d).first);
      gradients.push_back(
          Reshape(Slice(sums[b][d], 0, begin, begin + piece.x.numel(), 1, at),
                  piece.x.shape(), at));
    }
    replica.sgd.Step(gradients, at);
  }
  if (sharded() && ranks() > 1) {
    GatherPieces(
        [&](std::size_t d, std::size_t i) { return replicas_[d].pieces[i].x; },
        [&](std::size_t d, std::size_t i) {
          return replicas_[d].parameters[i];
        },
        at);
  }
  std::vector<Event> ends;
  for (const Device device : devices_) {
    ends.push_back(CurrentStream(device).Record());
  }
  in_flight_.push_back(std::move(ends));
}

Tensor DataParallel::Loss(const std::vector<Tensor>& sums, SourceLocation at) {
  // A copy: its place is used again.
  const auto copy = [&](const Tensor& x) {
    return Clone(Select(x, 0, x.numel() - 1, at), at);
  };
  if (!sharded()) return copy(sums[0]);
  // The last rank's shard has the loss.
  if (options_.processes == 1) {
    return To(copy(sums.back()), devices_[0], /*non_blocking=*/true, at);
  }
  std::vector<Tensor> parts;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    parts.push_back(RankOf(d) == ranks() - 1
                        ? copy(sums[d])
                        : NothingToAdd(1, devices_[d], sums[d].dtype(), at));
  }
  Communicate(Collective::kAllReduce, parts, at).Wait(at);
  return Reshape(parts[0], {}, at);
}

void DataParallel::AverageBuffers(const std::vector<std::int64_t>& sizes,
                                  std::int64_t samples, SourceLocation at) {
  const std::size_t n = devices_.size();
  if (ranks() == 1) return;
  // The first device that has samples, or computes some of the others'.
  std::size_t first = 0;
  while (first + 1 < n && sizes[first] == 0) ++first;
  if (sizes[first] == 0) first = 0;
  const NoGradGuard guard;
  for (std::size_t i = 0; i < replicas_[first].state.size(); ++i) {
    // By now the step has written buffers only.
    const Tensor& written = replicas_[first].state[i];
    if (written.version() == replicas_[first].versions[i]) continue;
    if (!IsFloatingPoint(written.dtype())) {  // a number of batches
      for (std::size_t d = 0; d < n; ++d) {
        if (sizes[d] > 0 || d == first) continue;
        CopyTo(written, replicas_[d].state[i], /*non_blocking=*/true, at);
      }
      continue;
    }
    std::vector<Tensor> parts;
    for (std::size_t d = 0; d < n; ++d) {
      const Tensor& x = replicas_[d].state[i];
      const double weight =
          static_cast<double>(sizes[d]) / static_cast<double>(samples);
      parts.push_back(sizes[d] == 0
                          ? NothingToAdd(x.numel(), x.device(), x.dtype(), at)
                          : Operand(Reshape(x, {-1}, at), at) *
                                Operand(weight, at));
    }
    Communicate(Collective::kAllReduce, parts, at).Wait(at);
    for (std::size_t d = 0; d < n; ++d) {
      const Tensor& x = replicas_[d].state[i];
      CopyTo(Reshape(parts[d], x.shape(), at), x, /*non_blocking=*/true, at);
    }
  }
}

}  // namespace d2l
