#include "common/parallel/data_parallel/step.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/nn/layers.h"
#include "common/ops/creation.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"

namespace d2l {
namespace {

// The neutral element: x + -0 is x, also where x is -0.
Tensor NothingToAdd(std::int64_t numel, Device device, DType dtype,
                    SourceLocation at) {
  return Full({numel}, -0.0, device, dtype, at);
}

// This process's part of a batch, on its devices.
std::vector<Tensor> SplitShare(const Tensor& all,
                               const std::vector<Device>& devices,
                               const BatchShare& share, SourceLocation at) {
  const std::int64_t end =
      std::accumulate(share.sizes.begin(), share.sizes.end(), share.begin);
  const bool whole = end - share.begin == all.size(0);
  return SplitBatch(whole ? all : Slice(all, 0, share.begin, end, 1, at),
                    devices, share.sizes, at);
}

}  // namespace

TrainingStep::TrainingStep(const DataParallelOptions& options,
                           const Communicator& all, ModuleReplicas* replicas,
                           Buckets* buckets, const Shards& shards,
                           SourceLocation at)
    : sums(buckets->size()),
      activations(replicas->size()),
      options_(options),
      all_(all),
      replicas_(*replicas),
      buckets_(*buckets),
      shards_(shards),
      at_(at),
      passes_(replicas->size()) {}

void TrainingStep::Run(const Tensor& x, const Tensor& labels,
                       const BatchShare& share) {
  const std::vector<Tensor> xs = SplitShare(x, all_.devices(), share, at_);
  const std::vector<Tensor> shard_labels =
      SplitShare(labels, all_.devices(), share, at_);
  // Tapes end before those that began earlier.
  const absl::Cleanup end = [this] {
    while (!passes_.empty()) passes_.pop_back();
  };
  for (std::size_t d = 0; d < passes_.size(); ++d) {
    if (share.sizes[d] == 0) continue;
    passes_[d] = std::make_unique<Pass>(replicas_[d].parameters, at_);
    DeviceMemory& memory = Memory(replicas_[d].device);
    const std::int64_t before = memory.Stats().allocated;
    outputs.push_back(Forward(d, xs[d], shard_labels[d],
                              1.0 / static_cast<double>(x.size(0))));
    activations[d] = memory.Stats().allocated - before;
  }
  if (outputs.empty()) ForwardForOthers(x, labels);
  BackwardAndAddUp();
  MakeLoss();
  AverageBuffers(share.sizes, x.size(0));
}

Tensor TrainingStep::Forward(std::size_t d, const Tensor& x,
                             const Tensor& labels, double scale) {
  const Tensor y = replicas_[d].net->Forward(x);
  const Tensor sum = nn::CrossEntropyLoss(y, labels, nn::Reduction::kSum);
  const Tensor seed = FullLike(sum, scale, at_);
  passes_[d]->loss = Operand(Detach(sum, at_), at_) * Operand(seed, at_);
  // The tape records nothing of the other devices' passes.
  passes_[d]->tape.Begin(sum, seed, at_);
  return y;
}

void TrainingStep::ForwardForOthers(const Tensor& x, const Tensor& labels) {
  const Device device = replicas_[0].device;
  passes_[0] = std::make_unique<Pass>(replicas_[0].parameters, at_);
  passes_[0]->counts = false;
  const GeneratorState before = GetGeneratorState(device);
  // Two samples: batch normalisation refuses a single value per channel.
  const std::int64_t rows = std::min<std::int64_t>(2, x.size(0));
  const auto first = [&](const Tensor& all) {
    return To(Slice(all, 0, 0, rows, 1, at_), device, true, at_);
  };
  Forward(0, first(x), first(labels), /*scale=*/1);
  SetGeneratorState(before, device);
}

void TrainingStep::BackwardAndAddUp() {
  const std::size_t count = buckets_.size();
  const auto reduce =
      shards_.sharded() ? Collective::kReduceScatter : Collective::kAllReduce;
  std::vector<Work> adding(count);
  std::size_t done = 0;
  // The current streams wait for the buckets before this one.
  const auto await = [&](std::size_t bucket) {
    for (; done < bucket; ++done) {
      adding[done].Wait(at_);
      for (std::size_t d = 0; d < passes_.size() && shards_.sharded(); ++d) {
        Tensor& sum = sums[done][d];
        const Shards::Range range = shards_.RangeOf(done, d);
        sum = Slice(sum, 0, range.begin, range.end, 1, at_);
        if (shards_.of_gradients()) sum = Clone(sum, at_);
      }
    }
  };
  // A bucket that leaves its memory cannot be added up later.
  const bool at_once = options_.overlap || shards_.of_gradients();
  for (std::size_t b = 0; b < count; ++b) {
    await(std::max(b + 1, buckets_.num_memories()) - buckets_.num_memories());
    sums[b] = buckets_.MemoryOf(b);
    for (std::size_t d = 0; d < passes_.size(); ++d) Fill(d, b, sums[b][d]);
    if (at_once) adding[b] = all_.Run(reduce, sums[b], at_);
    if (!options_.overlap && at_once) await(b + 1);
  }
  for (std::size_t b = 0; b < count && !at_once; ++b) {
    adding[b] = all_.Run(reduce, sums[b], at_);
  }
  await(count);
}

void TrainingStep::Fill(std::size_t d, std::size_t b, const Tensor& gradients) {
  Pass* const pass = passes_[d].get();
  const bool counts = pass != nullptr && pass->counts;
  if (!counts) {
    const NoGradGuard guard;
    CopyTo(NothingToAdd(1, replicas_[d].device, gradients.dtype(), at_),
           gradients, /*non_blocking=*/true, at_);
  }
  if (pass == nullptr) return;
  std::int64_t begin = 0;
  const auto add = [&](const Tensor& x) {
    if (!counts) return;
    const NoGradGuard guard;
    const std::int64_t end = begin + x.numel();
    CopyTo(Reshape(x, {-1}, at_), Slice(gradients, 0, begin, end, 1, at_),
           /*non_blocking=*/true, at_);
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

void TrainingStep::MakeLoss() {
  const std::vector<Tensor>& last = sums.back();
  // A copy: its memory is used again.
  const auto copy = [&](const Tensor& x) {
    return Clone(Select(x, 0, x.numel() - 1, at_), at_);
  };
  if (!shards_.sharded()) {
    loss = copy(last[0]);
    return;
  }
  // The last rank's shard has the loss.
  if (options_.processes == 1) {
    loss =
        To(copy(last.back()), replicas_[0].device, /*non_blocking=*/true, at_);
    return;
  }
  std::vector<Tensor> parts;
  for (std::size_t d = 0; d < last.size(); ++d) {
    parts.push_back(
        all_.RankOf(d) == all_.ranks() - 1
            ? copy(last[d])
            : NothingToAdd(1, replicas_[d].device, last[d].dtype(), at_));
  }
  all_.Run(Collective::kAllReduce, parts, at_).Wait(at_);
  loss = Reshape(parts[0], {}, at_);
}

void TrainingStep::AverageBuffers(const std::vector<std::int64_t>& sizes,
                                  std::int64_t samples) {
  const std::size_t n = sizes.size();
  if (all_.ranks() == 1) return;
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
        CopyTo(written, replicas_[d].state[i], /*non_blocking=*/true, at_);
      }
      continue;
    }
    std::vector<Tensor> parts;
    for (std::size_t d = 0; d < n; ++d) {
      const Tensor& x = replicas_[d].state[i];
      const double weight =
          static_cast<double>(sizes[d]) / static_cast<double>(samples);
      parts.push_back(sizes[d] == 0
                          ? NothingToAdd(x.numel(), x.device(), x.dtype(), at_)
                          : Operand(Reshape(x, {-1}, at_), at_) *
                                Operand(weight, at_));
    }
    all_.Run(Collective::kAllReduce, parts, at_).Wait(at_);
    for (std::size_t d = 0; d < n; ++d) {
      const Tensor& x = replicas_[d].state[i];
      CopyTo(Reshape(parts[d], x.shape(), at_), x, /*non_blocking=*/true, at_);
    }
  }
}

}  // namespace d2l
