#include "common/parallel/collective/collective.h"

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_format.h"
#include "common/base/mutex.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/device_table.h"
#include "common/device/listener.h"
#include "common/device/op_label.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/parallel/nccl/nccl.h"

namespace d2l {
namespace {

// Each thread makes a schedule's plan once.
Work RunSchedule(const char* name, const CollectiveSchedule& schedule,
                 Replicas replicas, SourceLocation at) {
  thread_local std::map<std::pair<std::string, int>, CollectivePlan> plans;
  CollectivePlan& plan = plans[{schedule.name(), schedule.ranks()}];
  if (plan.moves.empty()) plan = MakePlan(schedule);
  return RunPlan(name, plan, replicas, at);
}

int RanksOf(Replicas replicas) { return static_cast<int>(replicas.size()); }

}  // namespace

Stream& CommunicationStream(Device device) {
  struct Streams {
    Mutex mutex;
    std::map<Device, Stream*> of ABSL_GUARDED_BY(mutex);
  };
  static Streams& streams = *new Streams;
  MutexLock lock(streams.mutex);
  Stream*& stream = streams.of[device];
  if (stream == nullptr) stream = &NewStreamBeside(device);
  return *stream;
}

void Work::Wait(SourceLocation at) {
  const internal::PartOfRequest part;
  for (const auto& [device, event] : done_) {
    CurrentStream(device).Wait(event, at);
  }
  done_.clear();
}

void CheckReplicas(const char* name, Replicas replicas, SourceLocation at) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(
        absl::StrFormat("[%s] %s; requested at %s", name, what, at.ToString()));
  };
  if (replicas.empty()) refuse("a tensor for each device wanted; got none");
  std::set<Device> devices;
  for (const Tensor& x : replicas) {
    CheckDefined(name, x, at);
    if (x.numel() != replicas[0].numel() || x.dtype() != replicas[0].dtype()) {
      refuse(
          absl::StrFormat("tensors of one dtype and length wanted; got %s "
                          "and %s",
                          replicas[0].Describe(), x.Describe()));
    }
    if (!x.is_contiguous()) {
      refuse(
          absl::StrFormat("contiguous tensors wanted; got %s with strides "
                          "%s; copy it first: Contiguous(x)",
                          x.Describe(), x.strides().ToString()));
    }
    if (!devices.insert(x.device()).second) {
      refuse(absl::StrFormat(
          "each tensor must be on a device of its own; two are on %s",
          x.device().ToString()));
    }
  }
  // The streams for communication wait for the current ones.
  for (const Tensor& x : replicas) {
    CheckReadable(x, CurrentStream(x.device()), name, at);
  }
}

Work RunOnOneStream(const char* name, Replicas replicas,
                    std::function<void()> work, SourceLocation at) {
  CheckReplicas(name, replicas, at);
  const internal::PartOfRequest part;
  auto& stream =
      static_cast<CpuStream&>(CommunicationStream(replicas[0].device()));
  for (const Tensor& x : replicas) {
    stream.Wait(CurrentStream(x.device()).Record(), at);
    x.storage()->RecordStream(stream);
  }
  const std::uint64_t number = stream.Enqueue(
      OpLabel(name, at, internal::op_context.requested_by), std::move(work));
  std::vector<std::pair<Device, Event>> done;
  for (const Tensor& x : replicas) {
    x.storage()->MarkWritten(stream, number);
    done.emplace_back(x.device(), stream.Record());
  }
  return Work(std::move(done));
}

Work AllReduceAsync(Replicas replicas, AllReduceAlgorithm algorithm,
                    SourceLocation at) {
  if (algorithm == AllReduceAlgorithm::kNccl) {
    return AllReduceByNccl(replicas, at);
  }
  CheckReplicas("allreduce", replicas, at);
  return RunSchedule("allreduce",
                     AllReduceSchedule(algorithm, RanksOf(replicas)), replicas,
                     at);
}

Work ReduceScatterAsync(Replicas replicas, SourceLocation at) {
  return RunSchedule("reduce_scatter", ReduceScatterSchedule(RanksOf(replicas)),
                     replicas, at);
}

Work AllGatherAsync(Replicas replicas, SourceLocation at) {
  return RunSchedule("all_gather", AllGatherSchedule(RanksOf(replicas)),
                     replicas, at);
}

void AllReduce(Replicas replicas, AllReduceAlgorithm algorithm,
               SourceLocation at) {
  AllReduceAsync(replicas, algorithm, at).Wait(at);
}

}  // namespace d2l
