#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/device_table.h"
#include "common/device/listener.h"
#include "common/device/op_label.h"
#include "common/kernels/cpu/ordered_sum.h"
#include "common/kernels/enqueue.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/record.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/nccl/nccl.h"

namespace d2l {
namespace {

// Names a move in the records of profilers. It is never applied.
class MovePrimitive final : public Cloneable<MovePrimitive> {
 public:
  explicit MovePrimitive(const char* name) : name_(name) {}
  const char* name() const override { return name_; }
  Effect effect() const override { return Effect::kInPlace; }
  ValueSpec Infer(Inputs) const override { Refuse(); }
  std::uint64_t Launch(const LaunchContext&) const override { Refuse(); }

 private:
  [[noreturn]] void Refuse() const {
    throw std::invalid_argument(absl::StrFormat(
        "[%s] a collective is not part of a program that can be replayed; call "
        "it outside of the function that is traced",
        name_));
  }

  const char* const name_;
};

// The device whose memory stands for the CPU's.
Device HostDevice(const char* name, SourceLocation at) {
  for (const DeviceInfo& info : Devices()) {
    if (info.device.type() == DeviceType::kCpu) return info.device;
  }
  throw std::invalid_argument(absl::StrFormat(
      "[%s] the algorithm \"host\" adds in a CPU device's memory, and there is "
      "no such device; add cpu:0 to --devices, or choose another algorithm; "
      "requested at %s",
      name, at.ToString()));
}

// One execution of a plan.
class Executor {
 public:
  Executor(const char* name, const CollectivePlan& plan, Replicas replicas,
           SourceLocation at)
      : plan_(plan),
        numel_(replicas[0].numel()),
        dtype_(replicas[0].dtype()),
        at_(at),
        primitive_(name),
        memory_(replicas.begin(), replicas.end()) {
    if (plan.participants > plan.ranks) {
      const Device host = HostDevice(name, at);
      memory_.push_back(NewTensor(host, numel_));
    }
    for (const Tensor& x : memory_) {
      all_cpu_ = all_cpu_ && x.device().type() == DeviceType::kCpu;
      streams_.push_back(&CommunicationStream(x.device()));
    }
  }

  Work Run() {
    const internal::PartOfRequest part;
    std::vector<Event> events(plan_.moves.size());
    std::set<int> ranks;  // that make a move
    for (std::size_t i = 0; i < plan_.moves.size(); ++i) {
      const PlannedMove& planned = plan_.moves[i];
      Stream& stream = *streams_[planned.move.to];
      for (const int other : planned.waits) stream.Wait(events[other], at_);
      Make(planned.move);
      if (planned.awaited) events[i] = stream.Record();
      if (planned.move.to < plan_.ranks) ranks.insert(planned.move.to);
    }
    std::vector<std::pair<Device, Event>> done;
    for (const int rank : ranks) {
      done.emplace_back(memory_[rank].device(), streams_[rank]->Record());
    }
    return Work(std::move(done));
  }

  // One operation of all devices; the plan has no moves.
  Work RunByNccl() {
    const internal::PartOfRequest part;
    const internal::Listeners listeners;
    const std::int64_t host_begin = listeners.Now();
    std::vector<Event> ready;
    for (const Tensor& x : memory_) {
      ready.push_back(CurrentStream(x.device()).Record());
    }
    std::vector<CudaStream*> streams;
    std::vector<OpLabel> labels;
    std::vector<void*> data;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      // All streams wait for all inputs, so that one failure reaches all.
      for (const Event& event : ready) streams_[i]->Wait(event, at_);
      memory_[i].storage()->RecordStream(*streams_[i]);
      streams.push_back(static_cast<CudaStream*>(streams_[i]));
      labels.push_back(Label(numel_, *streams_[i], listeners));
      data.push_back(memory_[i].data());
    }
    const std::vector<std::uint64_t> numbers =
        EnqueueNcclSum(streams, labels, data, numel_, dtype_);
    std::vector<std::pair<Device, Event>> done;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      done.emplace_back(memory_[i].device(), streams_[i]->Record());
      NoteWritten({0, static_cast<int>(i), 0, 0, MoveOp::kSum}, labels[i],
                  numbers[i], listeners, host_begin);
    }
    return Work(std::move(done));
  }

 private:
  std::int64_t Begin(int chunk) const {
    return ChunkBegin(numel_, plan_.chunks, chunk);
  }
  std::int64_t Numel(const Move& move) const {
    return Begin(move.chunk + 1) - Begin(move.chunk);
  }

  Tensor NewTensor(Device device, std::int64_t numel) const {
    return Tensor(Memory(device).Allocate(numel * DTypeSize(dtype_),
                                          CommunicationStream(device)),
                  device, dtype_, {numel});
  }

  Tensor View(int rank, const Move& move) const {
    return Tensor::View(memory_[rank],
                        memory_[rank].offset() + Begin(move.chunk),
                        {Numel(move)}, {1});
  }

  OpLabel Label(std::int64_t numel, Stream& stream,
                const internal::Listeners& listeners) const {
    OpLabel label(primitive_.name(), at_, internal::op_context.requested_by);
    label.AddInput({numel});
    if (listeners.any()) label.set_stamps(listeners.NewStamps(stream));
    return label;
  }

  void Make(const Move& move) {
    Stream& stream = *streams_[move.to];
    if (move.op == MoveOp::kBegin) {
      stream.Wait(CurrentStream(stream.device()).Record(), at_);
      memory_[move.to].storage()->RecordStream(stream);
    }
    if (move.op == MoveOp::kBegin || move.op == MoveOp::kEnd) return;
    const internal::Listeners listeners;
    const std::int64_t host_begin = listeners.Now();
    const OpLabel label = Label(Numel(move), stream, listeners);
    const std::uint64_t number = Launch(stream, label, move);
    for (const int rank : Sources(move, plan_.ranks)) {
      memory_[rank].storage()->RecordStream(stream);
    }
    NoteWritten(move, label, number, listeners, host_begin);
  }

  std::uint64_t Launch(Stream& stream, const OpLabel& label, const Move& move) {
    const std::int64_t numel = Numel(move);
    const Tensor out = View(move.to, move);
    if (move.op == MoveOp::kCopy)
      return Copy(stream, label, move.from, out, move);
    // For all operations but the last, since stamps are written once.
    const OpLabel part(label.name(), label.requested_at(),
                       label.requested_by());
    const auto add = [&](const OpLabel& as, const Tensor& to, const Tensor& a,
                         const Tensor& b) {
      return Enqueue(stream, as,
                     kernels::BinaryArgs{kernels::BinaryOp::kAdd,
                                         dtype_,
                                         numel,
                                         to.data(),
                                         {a.data(), {}},
                                         {b.data(), {}},
                                         nullptr});
    };
    if (move.op == MoveOp::kAdd) {
      Transfer({move.from}, move);
      return add(label, out, out, Reach(stream, part, move.from, move));
    }
    if (all_cpu_) {
      // In the order in which no two devices read from the same one.
      std::vector<int> others;
      for (int i = 1; i <= plan_.ranks; ++i) {
        const int rank = (move.to + i) % plan_.ranks;
        if (rank != move.to) others.push_back(rank);
      }
      Transfer(std::move(others), move);
      std::vector<const void*> inputs;
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        inputs.push_back(View(rank, move).data());
      }
      return kernels::cpu::EnqueueOrderedSum(
          static_cast<CpuStream&>(stream), label,
          {dtype_, numel, out.data(), std::move(inputs)});
    }
    // Adds rank by rank. The sum of those before `to` needs memory of its own.
    const Tensor before = NewTensor(stream.device(), numel);
    Tensor sum = Reach(stream, part, 0, move);
    std::uint64_t number = 0;
    for (int rank = 1; rank < plan_.ranks; ++rank) {
      const bool last = rank + 1 == plan_.ranks;
      const Tensor& to = rank < move.to && !last ? before : out;
      number =
          add(last ? label : part, to, sum, Reach(stream, part, rank, move));
      sum = to;
    }
    return number;
  }

  // Lets these ranks' chunks cross the links to the receiver.
  void Transfer(std::vector<int> ranks, const Move& move) {
    const auto node = [this](int r) {
      return r < plan_.ranks ? memory_[r].device().index() : kHostNode;
    };
    for (int& rank : ranks) rank = node(rank);
    streams_[move.to]->Transfer(ranks, node(move.to),
                                Numel(move) * DTypeSize(dtype_));
  }

  // The rank's chunk if the stream's kernels can use it, or else a copy.
  Tensor Reach(Stream& stream, const OpLabel& label, int rank,
               const Move& move) {
    const Tensor x = View(rank, move);
    if (x.device() == stream.device() ||
        (x.device().type() == stream.device().type() &&
         GetDeviceInfo(x.device()).physical_index ==
             GetDeviceInfo(stream.device()).physical_index)) {
      return x;
    }
    Tensor copy = NewTensor(stream.device(), x.numel());
    Copy(stream, label, rank, copy, move);
    return copy;
  }

  std::uint64_t Copy(Stream& stream, const OpLabel& label, int rank,
                     const Tensor& to, const Move& move) {
    const Tensor x = View(rank, move);
    if (x.device().type() == to.device().type()) {
      Transfer({rank}, move);
      return Enqueue(stream, label,
                     kernels::CopyArgs{dtype_, dtype_, x.numel(), to.data(),
                                       x.data(), nullptr});
    }
    // Through pinned memory, for which both devices' streams work.
    const StreamGuard source(*streams_[rank]);
    return CopyPrimitive(primitive_.name(), {to.shape(), dtype_, to.device()})
        .Launch({stream, label, {&x}, to});
  }

  // The move has been enqueued as operation `number` of its stream.
  void NoteWritten(const Move& move, const OpLabel& label, std::uint64_t number,
                   const internal::Listeners& listeners,
                   std::int64_t host_begin) const {
    Stream& stream = *streams_[move.to];
    memory_[move.to].storage()->MarkWritten(stream, number);
    if (!listeners.any()) return;
    std::vector<Tensor> views;
    for (const int rank : Sources(move, plan_.ranks)) {
      views.push_back(View(rank, move));
    }
    std::vector<const Tensor*> inputs;
    for (const Tensor& view : views) inputs.push_back(&view);
    const Tensor output = View(move.to, move);
    const OpRecord record{&primitive_,
                          number,
                          &stream,
                          inputs,
                          output,
                          /*in_place=*/true,
                          /*view=*/false,
                          label.requested_at(),
                          label.requested_by(),
                          host_begin,
                          listeners.Now(),
                          label.stamps()};
    listeners.ForEach([&](OpListener& listener) { listener.OnOp(record); });
  }

  const CollectivePlan& plan_;
  const std::int64_t numel_;
  const DType dtype_;
  const SourceLocation at_;
  const MovePrimitive primitive_;
  std::vector<Tensor> memory_;  // of each rank, and the CPU's
  std::vector<Stream*> streams_;
  bool all_cpu_ = true;
};

}  // namespace

absl::Status CheckNccl(absl::Span<const Device> devices) {
  std::map<int, Device> on;
  for (const Device device : devices) {
    const DeviceInfo& info = GetDeviceInfo(device);
    if (device.type() != DeviceType::kCuda) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "NCCL adds on GPUs, and %s is none; add up by a schedule, such as "
          "split (--allreduce=split)",
          device.ToString()));
    }
    const auto [other, first] = on.emplace(info.physical_index, device);
    if (first) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "NCCL takes each GPU once, and %s and %s share GPU %d; add up by a "
        "schedule, such as split (--allreduce=split)",
        other->second.ToString(), device.ToString(), info.physical_index));
  }
  const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (devices.size() > 1 && blocking != nullptr &&
      std::string(blocking) == "1") {
    return absl::InvalidArgumentError(
        "with CUDA_LAUNCH_BLOCKING=1 the first GPU's kernel would wait for "
        "ever, as the second's is launched behind it; unset it, or add up by a "
        "schedule, such as split (--allreduce=split)");
  }
  return Nccl().status();
}

Work AllReduceByNccl(Replicas replicas, SourceLocation at) {
  constexpr char kName[] = "allreduce";
  CheckReplicas(kName, replicas, at);
  std::vector<Device> devices;
  for (const Tensor& x : replicas) devices.push_back(x.device());
  const absl::Status status = CheckNccl(devices);
  if (!status.ok()) {
    const std::string text = absl::StrFormat("[%s] %s; requested at %s", kName,
                                             status.message(), at.ToString());
    if (absl::IsInvalidArgument(status)) throw std::invalid_argument(text);
    throw std::runtime_error(text);
  }
  const int count = static_cast<int>(replicas.size());
  const CollectivePlan whole = {count, count, /*chunks=*/1, {}};
  return Executor(kName, whole, replicas, at).RunByNccl();
}

Work RunPlan(const char* name, const CollectivePlan& plan, Replicas replicas,
             SourceLocation at) {
  CheckReplicas(name, replicas, at);
  const int count = static_cast<int>(replicas.size());
  if (count != plan.ranks) {
    throw std::invalid_argument(absl::StrFormat(
        "[%s] a plan for %d devices; got %d tensors; requested at %s", name,
        plan.ranks, count, at.ToString()));
  }
  return Executor(name, plan, replicas, at).Run();
}

}  // namespace d2l
