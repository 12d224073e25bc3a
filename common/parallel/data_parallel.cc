#include "common/parallel/data_parallel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/autograd/tape.h"
#include "common/base/mutex.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/ops/ops.h"
#include "common/ops/primitive.h"
#include "common/ops/record.h"
#include "common/parallel/split_batch.h"

namespace d2l {
namespace {

// On which buckets wait to be added up. Not the streams of the collectives:
// those begin behind the current stream, on which all of Backward is queued
// when the last device's first bucket is full.
Stream& BucketStream(Device device) {
  static Mutex mutex;
  static auto& streams = *new absl::flat_hash_map<Device, Stream*>;
  const MutexLock lock(mutex);
  Stream*& stream = streams[device];
  if (stream == nullptr) stream = &NewStream(device);
  return *stream;
}

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

// The neutral element: x + -0 is x, also where x is -0.
Tensor NothingToAdd(std::int64_t numel, Device device, DType dtype,
                    SourceLocation at) {
  return Full({numel}, -0.0, device, dtype, at);
}

Tensor CrossEntropySum(const Tensor& outputs, const Tensor& labels) {
  return nn::CrossEntropyLoss(outputs, labels, nn::Reduction::kSum);
}

}  // namespace

DataParallel::DataParallel(std::unique_ptr<nn::Module> net,
                           const std::vector<int>& device_ids,
                           DataParallelOptions options)
    : options_(std::move(options)), devices_(DevicesOf(device_ids)) {
  if (options_.max_in_flight < 1) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] max_in_flight, the number of steps under way, must be "
        "at least 1; got %d",
        options_.max_in_flight));
  }
  if (options_.split.empty()) options_.split.assign(devices_.size(), 1);
  if (options_.split.size() != devices_.size()) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] the split %s has %d weights for %d devices",
        absl::StrJoin(options_.split, ":"), options_.split.size(),
        devices_.size()));
  }
  ShardSizes(0, options_.split);  // throws if they are no weights
  nn::To(*net, devices_[0]);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    std::unique_ptr<nn::Module> replica =
        i == 0 ? std::move(net) : nn::Clone(module(), devices_[i]);
    std::vector<Tensor> parameters = nn::Parameters(*replica);
    std::vector<Tensor> state = WithoutNames(nn::NamedState(*replica));
    nn::SGD sgd(parameters, {/*lr=*/0});
    replicas_.push_back({std::move(replica),
                         std::move(parameters),
                         std::move(state),
                         {},
                         std::move(sgd)});
  }
  MakeBuckets();
  RememberVersions();
}

void DataParallel::MakeBuckets() {
  const std::vector<Tensor>& parameters = replicas_[0].parameters;
  bool full = true;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const DType dtype = parameters[i].dtype();
    if (full || parameters[buckets_.back().parameters[0]].dtype() != dtype) {
      buckets_.emplace_back();
    }
    Bucket& bucket = buckets_.back();
    bucket.parameters.push_back(static_cast<int>(i));
    bucket.numel += parameters[i].numel();
    full = bucket.numel * static_cast<std::int64_t>(DTypeSize(dtype)) >=
           (buckets_.size() == 1 ? options_.first_bucket_bytes
                                 : options_.bucket_bytes);
  }
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

Tensor DataParallel::Forward(const Tensor& x) {
  const SourceLocation at = internal::op_context.requested_by;
  CheckBatch(x, at);
  FollowModule(at);
  const NoGradGuard guard;
  const std::vector<Tensor> shards =
      SplitBatch(x, devices_, ShardSizes(x.size(0), options_.split), at);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].size(0) > 0) {
      outputs.push_back(replicas_[i].net->Forward(shards[i]));
    }
  }
  for (Tensor& output : outputs) {
    output = To(output, devices_[0], /*non_blocking=*/true, at);
  }
  return Cat(outputs, 0, at);
}

Tensor DataParallel::Step(const Tensor& x, const Tensor& labels,
                          const nn::SGDOptions& options, SourceLocation at) {
  return Step(x, labels, options, CrossEntropySum, at);
}

Tensor DataParallel::Step(const Tensor& x, const Tensor& labels,
                          const nn::SGDOptions& options, const Loss& loss,
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
  const std::vector<std::int64_t> sizes = ShardSizes(x.size(0), options_.split);
  for (Replica& replica : replicas_) replica.sgd.options() = options;
  Tensor mean;
  try {
    WaitForRoom(at);
    mean =
        RequestStep(SplitBatch(x, devices_, sizes, at),
                    SplitBatch(labels, devices_, sizes, at), sizes, loss, at);
  } catch (const AsyncError& error) {
    failed_ = error.what();
    RememberVersions();
    throw;
  }
  RememberVersions();
  return mean;
}

Tensor DataParallel::RequestStep(absl::Span<const Tensor> xs,
                                 absl::Span<const Tensor> labels,
                                 const std::vector<std::int64_t>& sizes,
                                 const Loss& loss, SourceLocation at) {
  const std::size_t n = devices_.size();
  const double scale = 1.0 / static_cast<double>(std::accumulate(
                                 sizes.begin(), sizes.end(), std::int64_t{0}));
  const std::size_t last_device =
      n - 1 -
      (std::find_if(sizes.rbegin(), sizes.rend(),
                    [](std::int64_t size) { return size > 0; }) -
       sizes.rbegin());
  // By bucket and device.
  std::vector<std::vector<Tensor>> filled(buckets_.size(),
                                          std::vector<Tensor>(n));
  std::vector<std::vector<Event>> ready(buckets_.size(), std::vector<Event>(n));
  const auto fill = [&](std::size_t bucket, std::size_t device,
                        const Tensor& flat) {
    filled[bucket][device] = flat;
    ready[bucket][device] = CurrentStream(devices_[device]).Record();
  };
  const std::size_t last_bucket = buckets_.size() - 1;
  for (std::size_t d = 0; d < n; ++d) {
    if (sizes[d] > 0) continue;
    for (std::size_t b = 0; b <= last_bucket; ++b) {
      const Bucket& bucket = buckets_[b];
      fill(b, d,
           NothingToAdd(bucket.numel + (b == last_bucket ? 1 : 0), devices_[d],
                        replicas_[d].parameters[bucket.parameters[0]].dtype(),
                        at));
    }
  }
  std::vector<std::size_t> bucket_of(replicas_[0].parameters.size());
  for (std::size_t b = 0; b <= last_bucket; ++b) {
    for (const int i : buckets_[b].parameters) bucket_of[i] = b;
  }
  for (std::size_t d = 0; d < n; ++d) {
    if (sizes[d] == 0) continue;
    Replica& replica = replicas_[d];
    GradientTape tape(replica.parameters, at);
    const Tensor sum = loss(replica.net->Forward(xs[d]), labels[d]);
    const Tensor seed = FullLike(sum, scale, at);
    std::vector<Tensor> gradients(replica.parameters.size());
    std::vector<std::size_t> missing;
    for (const Bucket& bucket : buckets_) {
      missing.push_back(bucket.parameters.size());
    }
    tape.set_on_gradient([&](int i, const Tensor& gradient) {
      gradients[i] = gradient;
      const std::size_t b = bucket_of[i];
      if (--missing[b] > 0) return;
      std::vector<Tensor> parts;
      for (const int part : buckets_[b].parameters) {
        parts.push_back(Reshape(gradients[part], {-1}, at));
        gradients[part] = Tensor();
      }
      if (b == last_bucket) {
        const Tensor mean = Operand(Detach(sum, at), at) * Operand(seed, at);
        parts.push_back(Reshape(To(mean, parts[0].dtype(), at), {1}, at));
      }
      fill(b, d, Cat(parts, 0, at));
      if (options_.overlap && d == last_device) Reduce(filled[b], ready[b], at);
    });
    tape.Backward(sum, seed, at);
  }
  for (std::size_t b = 0; !options_.overlap && b <= last_bucket; ++b) {
    for (std::size_t d = 0; d < n; ++d) {
      ready[b][d] = CurrentStream(devices_[d]).Record();
    }
    Reduce(filled[b], ready[b], at);
  }
  AwaitReductions(at);
  AverageBuffers(sizes, at);
  in_flight_.emplace_back();
  for (std::size_t d = 0; d < n; ++d) {
    std::vector<Tensor> gradients(bucket_of.size());
    for (std::size_t b = 0; b <= last_bucket; ++b) {
      std::int64_t begin = 0;
      for (const int i : buckets_[b].parameters) {
        const Tensor& parameter = replicas_[d].parameters[i];
        const std::int64_t end = begin + parameter.numel();
        gradients[i] = Reshape(Slice(filled[b][d], 0, begin, end, 1, at),
                               parameter.shape(), at);
        begin = end;
      }
    }
    replicas_[d].sgd.Step(gradients, at);
    in_flight_.back().push_back(CurrentStream(devices_[d]).Record());
  }
  // A copy: the bucket goes.
  return Clone(
      Select(filled[last_bucket][0], 0, buckets_[last_bucket].numel, at), at);
}

void DataParallel::Reduce(const std::vector<Tensor>& tensors,
                          const std::vector<Event>& ready, SourceLocation at) {
  const std::size_t n = devices_.size();
  if (n == 1) return;
  std::deque<StreamGuard> guards;
  for (std::size_t d = 0; d < n; ++d) {
    Stream& stream = BucketStream(devices_[d]);
    stream.Wait(ready[d], at);
    guards.emplace_back(stream);
  }
  AllReduceAsync(tensors, options_.allreduce, at).Wait(at);
  if (!options_.emulated_link.has_value()) return;
  const double bytes = 2.0 * static_cast<double>(n - 1) /
                       static_cast<double>(n) *
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
  if (devices_.size() == 1) return;
  for (const Device device : devices_) {
    CurrentStream(device).Wait(BucketStream(device).Record(), at);
  }
}

void DataParallel::AverageBuffers(const std::vector<std::int64_t>& sizes,
                                  SourceLocation at) {
  const std::size_t n = devices_.size();
  if (n == 1) return;
  const std::size_t first =
      std::find_if(sizes.begin(), sizes.end(),
                   [](std::int64_t size) { return size > 0; }) -
      sizes.begin();
  const double samples = static_cast<double>(
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
  // What the step wrote; it has not written to parameters yet.
  std::vector<std::size_t> written;
  for (std::size_t i = 0; i < replicas_[first].state.size(); ++i) {
    const Tensor& x = replicas_[first].state[i];
    if (x.version() != replicas_[first].versions[i]) written.push_back(i);
  }
  const NoGradGuard guard;
  for (const std::size_t i : written) {
    std::vector<Tensor> parts;
    std::vector<Event> ready;
    for (std::size_t d = 0; d < n; ++d) {
      const Tensor& x = replicas_[d].state[i];
      if (!IsFloatingPoint(x.dtype())) continue;
      parts.push_back(
          sizes[d] == 0
              ? NothingToAdd(x.numel(), x.device(), x.dtype(), at)
              : Operand(Reshape(x, {-1}, at), at) *
                    Operand(static_cast<double>(sizes[d]) / samples, at));
      ready.push_back(CurrentStream(devices_[d]).Record());
    }
    if (!parts.empty()) {
      Reduce(parts, ready, at);
      AwaitReductions(at);
    }
    for (std::size_t d = 0; d < n; ++d) {
      const Tensor& x = replicas_[d].state[i];
      if (!parts.empty()) {
        CopyTo(Reshape(parts[d], x.shape(), at), x, /*non_blocking=*/true, at);
      } else if (sizes[d] == 0) {  // a counter of batches
        CopyTo(replicas_[first].state[i], x, /*non_blocking=*/true, at);
      }
    }
  }
}

void DataParallel::FollowModule(SourceLocation at) {
  bool written = false;
  std::string unloaded;
  for (std::size_t d = 0; d < replicas_.size(); ++d) {
    const Replica& replica = replicas_[d];
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
      const bool same = kept.version() == replica.versions[i];
      written = written || !same;
      if (d == 0 && same && unloaded.empty()) unloaded = named[i].first;
    }
  }
  if (!failed_.empty() && !unloaded.empty()) {
    throw std::logic_error(absl::StrFormat(
        "[DataParallel] a step failed, so that devices may differ; load all "
        "parameters and buffers of the module, nn::LoadStateDict, and go on "
        "(%s is as it was); requested at %s; the failure: %s",
        unloaded, at.ToString(), failed_));
  }
  if (written) CopyToReplicas(at);
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
  failed_.clear();
  const NoGradGuard guard;
  for (std::size_t d = 1; d < replicas_.size(); ++d) {
    for (std::size_t i = 0; i < replicas_[d].state.size(); ++i) {
      CopyTo(replicas_[0].state[i], replicas_[d].state[i],
             /*non_blocking=*/true, at);
    }
  }
  RememberVersions();
}

void DataParallel::RememberVersions() {
  for (Replica& replica : replicas_) {
    replica.versions.clear();
    for (const Tensor& x : replica.state) {
      replica.versions.push_back(x.version());
    }
  }
}

void DataParallel::WaitForRoom(SourceLocation at) {
  while (static_cast<int>(in_flight_.size()) >= options_.max_in_flight) {
    const std::vector<Event> step = std::move(in_flight_.front());
    in_flight_.pop_front();
    for (const Event& end : step) end.Synchronize(at);
  }
}

const std::vector<Tensor>& DataParallel::momentum_buffers() {
  return replicas_[0].sgd.momentum_buffers();
}

void DataParallel::SetMomentumBuffers(absl::Span<const Tensor> buffers,
                                      SourceLocation at) {
  const std::size_t count = replicas_[0].parameters.size();
  if (!buffers.empty() && buffers.size() != count) {
    throw std::invalid_argument(absl::StrFormat(
        "[DataParallel] a momentum buffer for each of %d parameters, or none, "
        "wanted; got %d; requested at %s",
        count, buffers.size(), at.ToString()));
  }
  for (Replica& replica : replicas_) {
    std::vector<Tensor>& kept = replica.sgd.momentum_buffers();
    for (std::size_t i = 0; i < count; ++i) {
      kept[i] = Tensor();
      if (buffers.empty() || !buffers[i].defined()) continue;
      const Tensor& parameter = replica.parameters[i];
      if (buffers[i].shape() != parameter.shape()) {
        throw std::invalid_argument(absl::StrFormat(
            "[DataParallel] momentum buffer %d is %s, its parameter %s; "
            "requested at %s",
            i, buffers[i].Describe(), parameter.Describe(), at.ToString()));
      }
      kept[i] = EmptyLike(parameter, at);
      CopyTo(buffers[i], kept[i], /*non_blocking=*/true, at);
    }
  }
}

std::string DataParallel::Plan(std::int64_t samples) const {
  const std::vector<std::int64_t> sizes = ShardSizes(samples, options_.split);
  std::string text =
      absl::StrFormat("A step with %d samples on %d devices:\n", samples,
                      static_cast<int>(devices_.size()));
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    absl::StrAppendFormat(&text, "  %s: %d samples\n", devices_[d].ToString(),
                          sizes[d]);
  }
  absl::StrAppendFormat(
      &text, "  gradients, added up by %s %s:\n",
      AllReduceAlgorithmName(options_.allreduce),
      options_.overlap ? "while others are computed" : "when all are computed");
  const auto named = nn::NamedParameters(*this);
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    std::vector<std::string> names;
    for (const int i : buckets_[b].parameters) names.push_back(named[i].first);
    absl::StrAppendFormat(
        &text, "  bucket %d, %d bytes: %s\n", b,
        (buckets_[b].numel + (b + 1 == buckets_.size() ? 1 : 0)) *
            static_cast<std::int64_t>(
                DTypeSize(named[buckets_[b].parameters[0]].second.dtype())),
        absl::StrJoin(names, ", "));
  }
  return text;
}

}  // namespace d2l
