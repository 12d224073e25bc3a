#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/autograd/tape.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/ops/creation.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/split_batch.h"

namespace d2l {
namespace {

// On which buckets wait to be added up. Not the streams of the collectives:
// those begin behind the current stream, on which all of Backward is queued
// when the last device's first bucket is full.
Stream& BucketStream(Device device) { return CommunicationStream(device, 1); }

// The neutral element: x + -0 is x, also where x is -0.
Tensor NothingToAdd(std::int64_t numel, Device device, DType dtype,
                    SourceLocation at) {
  return Full({numel}, -0.0, device, dtype, at);
}

}  // namespace

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
  for (const Replica& replica : replicas_) {
    for (const Tensor& x : replica.state) {
      Stream* const writer = x.storage()->writer();
      if (writer == nullptr || !writer->ever_failed()) continue;
      ThrowIfFailed(*writer, x.storage()->written_by(), "DataParallel", at);
    }
  }
  Result result;
  try {
    result = RequestStep(x, labels, at);
  } catch (const AsyncError&) {
    // Known while the step is requested: other devices would not hear of it.
    FailEverywhere(at);
    RememberVersions();
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
    for (Tensor& parameter : replicas_[d].parameters) {
      try {
        parameter *= Operand(1.0, at);  // will be skipped
      } catch (const AsyncError&) {     // NOLINT(bugprone-empty-catch)
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
  Gradients gradients(buckets_.size(), devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (share.sizes[d] == 0) FillWithNothing(d, gradients, at);
  }
  Result result;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (share.sizes[d] == 0) continue;
    result.outputs.push_back(Backward(d, xs[d], shard_labels[d],
                                      1.0 / static_cast<double>(x.size(0)),
                                      gradients, at));
  }
  AllReduceGradients(gradients, at);
  if (result.outputs.empty()) TouchBuffers(x, at);
  AverageBuffers(share.sizes, x.size(0), at);
  Update(gradients.buckets, at);
  // A copy: the bucket goes.
  result.loss = Clone(
      Select(gradients.buckets.back()[0], 0, buckets_.back().numel - 1, at),
      at);
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

void DataParallel::FillWithNothing(std::size_t d, Gradients& gradients,
                                   SourceLocation at) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const int first = buckets_[b].parameters[0];
    gradients.buckets[b][d] =
        NothingToAdd(buckets_[b].numel, devices_[d],
                     replicas_[d].parameters[first].dtype(), at);
    gradients.ready[b][d] = CurrentStream(devices_[d]).Record();
  }
}

Tensor DataParallel::Backward(std::size_t d, const Tensor& x,
                              const Tensor& labels, double scale,
                              Gradients& gradients, SourceLocation at) {
  Replica& replica = replicas_[d];
  GradientTape tape(replica.parameters, at);
  const Tensor outputs = replica.net->Forward(x);
  const Tensor sum = nn::CrossEntropyLoss(outputs, labels, nn::Reduction::kSum);
  const Tensor seed = FullLike(sum, scale, at);
  std::vector<Tensor> of_parameters(replica.parameters.size());
  std::vector<std::size_t> missing;
  for (const Bucket& bucket : buckets_) {
    missing.push_back(bucket.parameters.size());
  }
  tape.set_on_gradient([&](int i, const Tensor& gradient) {
    of_parameters[i] = gradient;
    const std::size_t b = bucket_of_[i];
    if (--missing[b] > 0) return;
    std::vector<Tensor> parts;
    for (const int part : buckets_[b].parameters) {
      parts.push_back(Reshape(of_parameters[part], {-1}, at));
      of_parameters[part] = Tensor();
    }
    if (b + 1 == buckets_.size()) {
      const Tensor mean = Operand(Detach(sum, at), at) * Operand(seed, at);
      parts.push_back(Reshape(To(mean, parts[0].dtype(), at), {1}, at));
    }
    gradients.buckets[b][d] = Cat(parts, 0, at);
    gradients.ready[b][d] = CurrentStream(devices_[d]).Record();
    if (options_.overlap) ReduceFull(gradients, at);
  });
  tape.Backward(sum, seed, at);
  return outputs;
}

void DataParallel::ReduceFull(Gradients& gradients, SourceLocation at) {
  for (std::size_t& b = gradients.reduced; b < buckets_.size(); ++b) {
    for (const Tensor& flat : gradients.buckets[b]) {
      if (!flat.defined()) return;
    }
    Reduce(gradients.buckets[b], gradients.ready[b], at);
  }
}

void DataParallel::AllReduceGradients(Gradients& gradients, SourceLocation at) {
  // Without overlap no bucket is added up before all are there.
  for (std::size_t b = gradients.reduced; b < buckets_.size(); ++b) {
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      gradients.ready[b][d] = CurrentStream(devices_[d]).Record();
    }
  }
  ReduceFull(gradients, at);
  AwaitReductions(at);
}

void DataParallel::Update(const std::vector<std::vector<Tensor>>& sums,
                          SourceLocation at) {
  std::vector<Event> ends;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Replica& replica = replicas_[d];
    std::vector<Tensor> gradients(replica.parameters.size());
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      std::int64_t begin = 0;
      for (const int i : buckets_[b].parameters) {
        const Tensor& parameter = replica.parameters[i];
        const std::int64_t end = begin + parameter.numel();
        gradients[i] = Reshape(Slice(sums[b][d], 0, begin, end, 1, at),
                               parameter.shape(), at);
        begin = end;
      }
    }
    replica.sgd.Step(gradients, at);
    ends.push_back(CurrentStream(devices_[d]).Record());
  }
  in_flight_.push_back(std::move(ends));
}

void DataParallel::Reduce(const std::vector<Tensor>& tensors,
                          const std::vector<Event>& ready, SourceLocation at) {
  const std::size_t n = devices_.size();
  if (ranks() == 1) return;
  std::deque<StreamGuard> guards;
  for (std::size_t d = 0; d < n; ++d) {
    Stream& stream = BucketStream(devices_[d]);
    stream.Wait(ready[d], at);
    guards.emplace_back(stream);
  }
  (options_.sum ? options_.sum(tensors, at)
                : AllReduceAsync(tensors, options_.allreduce, at))
      .Wait(at);
  if (!options_.emulated_link.has_value()) return;
  const double bytes = 2.0 * static_cast<double>(ranks() - 1) /
                       static_cast<double>(ranks()) *
                       static_cast<double>(tensors[0].storage()->bytes());
  const std::chrono::duration<double> time(
      options_.emulated_link->seconds +
      bytes / options_.emulated_link->bytes_per_second);
  for (const Device device : devices_) {
    BucketStream(device).HostCallback(
        [time] { std::this_thread::sleep_for(time); }, at);
  }
}

void DataParallel::AwaitReductions(SourceLocation at) {
  if (ranks() == 1) return;
  for (const Device device : devices_) {
    CurrentStream(device).Wait(BucketStream(device).Record(), at);
  }
}

void DataParallel::TouchBuffers(const Tensor& x, SourceLocation at) {
  if (nn::NamedBuffers(module()).empty()) return;
  const GeneratorState before = GetGeneratorState(devices_[0]);
  const NoGradGuard guard;
  // Two samples: batch normalisation refuses one where that is one value. What
  // comes of it has no weight in the mean.
  const std::int64_t rows = std::min<std::int64_t>(2, x.size(0));
  module().Forward(To(Slice(x, 0, 0, rows, 1, at), devices_[0], true, at));
  SetGeneratorState(before, devices_[0]);
}

void DataParallel::AverageBuffers(const std::vector<std::int64_t>& sizes,
                                  std::int64_t samples, SourceLocation at) {
  const std::size_t n = devices_.size();
  if (ranks() == 1) return;
  // The first that has samples, or that TouchBuffers was for.
  std::size_t first = 0;
  while (first + 1 < n && sizes[first] == 0) ++first;
  if (sizes[first] == 0) first = 0;
  const NoGradGuard guard;
  for (std::size_t i = 0; i < replicas_[first].state.size(); ++i) {
    // What the step has written by now are buffers.
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
    std::vector<Event> ready;
    for (std::size_t d = 0; d < n; ++d) {
      const Tensor& x = replicas_[d].state[i];
      const double weight =
          static_cast<double>(sizes[d]) / static_cast<double>(samples);
      parts.push_back(sizes[d] == 0
                          ? NothingToAdd(x.numel(), x.device(), x.dtype(), at)
                          : Operand(Reshape(x, {-1}, at), at) *
                                Operand(weight, at));
      ready.push_back(CurrentStream(devices_[d]).Record());
    }
    Reduce(parts, ready, at);
    AwaitReductions(at);
    for (std::size_t d = 0; d < n; ++d) {
      const Tensor& x = replicas_[d].state[i];
      CopyTo(Reshape(parts[d], x.shape(), at), x, /*non_blocking=*/true, at);
    }
  }
}

}  // namespace d2l
