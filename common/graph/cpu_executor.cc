// A program on a CPU's stream: the kernels' tasks are captured once (Sink), and
// a call is one task that runs them again (Tape).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/stream_capture.h"
#include "common/device/failure.h"
#include "common/graph/stream_executor.h"

namespace d2l::ir {
namespace {

// A kernel's task.
struct Task {
  OpLabel label;
  std::function<void()> run;
};

class Sink : public StreamCapture {
 public:
  explicit Sink(std::vector<Task>& tasks) : tasks_(tasks) {}
  std::uint64_t Capture(CpuStream&, const OpLabel& label,
                        std::function<void()> run) override {
    tasks_.push_back({label, std::move(run)});
    return 0;
  }

 private:
  std::vector<Task>& tasks_;
};

class CpuExecutor final : public StreamExecutor {
 public:
  CpuExecutor(const Graph& graph, const CapturedPlan& plan, Stream& stream,
              const char* name)
      : StreamExecutor(graph, plan, stream, name),
        tape_(std::make_shared<Tape>()) {
    for (const Nodes& nodes : Launches()) {
      if (plan.IsLaunched(*nodes[0])) {
        Tape::Item item = {0, 0, static_cast<int>(launched_.size())};
        tape_->items.push_back(item);
        launched_.push_back(nodes);
        LaunchByCalls(nodes);
        continue;
      }
      const std::size_t begin = tape_->tasks.size();
      AddTasks(nodes, {}, tape_->tasks);
      std::vector<Tape::Item>& items = tape_->items;
      if (!items.empty() && items.back().launched < 0) {
        items.back().end = tape_->tasks.size();
      } else {
        items.push_back({begin, tape_->tasks.size()});
      }
    }
  }

 private:
  struct Tape;

  // The part of the work that belongs to one call. Calls are used again when
  // the worker is done with them: if it freed what the caller allocates, either
  // would wait for the other's cache lines, and a small call would take twice
  // as long.
  struct Call {
    std::atomic<int> owners{1};  // the executor, and the task
    std::shared_ptr<const Tape> tape;
    Copies copies;
    std::vector<Task> tasks;
    std::vector<std::size_t> ends;  // of each launched node's tasks
  };
  struct Release {
    void operator()(Call* call) const {
      if (call->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete call;
      }
    }
  };
  using CallPtr = std::unique_ptr<Call, Release>;

  // The tasks in their order: those of captured nodes, and places for those of
  // nodes that each call launches. A tape owns no memory of a device, so that a
  // worker may destroy it.
  struct Tape {
    struct Item {
      std::size_t begin, end;  // in tasks, unless launched
      int launched = -1;       // number in Call::ends
    };

    void Run(const Call& call) const {
      for (const MemoryCopy& copy : call.copies.before) {
        std::memcpy(copy.to, copy.from, copy.bytes);
      }
      for (const Item& item : items) {
        if (item.launched < 0) {
          RunTasks(tasks, item.begin, item.end);
        } else {
          RunTasks(call.tasks,
                   item.launched == 0 ? 0 : call.ends[item.launched - 1],
                   call.ends[item.launched]);
        }
      }
      for (const MemoryCopy& copy : call.copies.after) {
        std::memcpy(copy.to, copy.from, copy.bytes);
      }
    }

    static void RunTasks(const std::vector<Task>& tasks, std::size_t begin,
                         std::size_t end) {
      std::size_t i = begin;
      try {
        for (; i < end; ++i) tasks[i].run();
      } catch (...) {
        throw StepError(tasks[i].label, std::current_exception());
      }
    }

    std::vector<Task> tasks;
    std::vector<Item> items;
  };

  std::uint64_t Enqueue(const OpLabel& label, absl::Span<const Tensor> inputs,
                        const std::vector<Tensor>& results,
                        Copies&& copies) override {
    CallPtr call = FreeCall();
    call->copies = std::move(copies);
    if (!launched_.empty()) LaunchForCall(inputs, results, *call);
    return static_cast<CpuStream&>(stream_).Enqueue(
        label, [call = std::move(call)] { call->tape->Run(*call); });
  }

  // The oldest call, if its task is done, else a new one. The caller is its
  // second owner, so no other thread gets it.
  CallPtr FreeCall() {
    const MutexLock lock(mutex_);
    if (next_ == calls_.size()) next_ = 0;
    if (calls_.empty() ||
        calls_[next_]->owners.load(std::memory_order_acquire) > 1) {
      const auto at = calls_.begin() + static_cast<std::ptrdiff_t>(next_);
      calls_.insert(at, CallPtr(new Call))->get()->tape = tape_;
    }
    Call* const call = calls_[next_++].get();
    call->owners.fetch_add(1, std::memory_order_relaxed);
    return CallPtr(call);
  }

  void LaunchForCall(absl::Span<const Tensor> inputs,
                     const std::vector<Tensor>& results, Call& call) const {
    const std::vector<Tensor> tensors = TensorsOf(inputs, results);
    call.tasks.clear();
    call.ends.clear();
    for (const Nodes& nodes : launched_) {
      AddTasks(nodes, tensors, call.tasks);
      call.ends.push_back(call.tasks.size());
    }
  }

  void AddTasks(const Nodes& nodes, const std::vector<Tensor>& tensors,
                std::vector<Task>& tasks) const {
    const Node& node = *nodes[0];
    if (node.kind == NodeKind::kFused) {
      absl::InlinedVector<void*, 8> memory;
      for (const ValueId value : node.inputs) {
        memory.push_back(At(tensors, value).data());
      }
      for (const ValueId value : node.outputs) {
        memory.push_back(At(tensors, value).data());
      }
      OpLabel label("fused", node.op.requested_at, node.op.requested_by);
      tasks.push_back(
          {label, [strips = plan_.strips[&node - plan_.function.nodes.data()],
                   memory] { strips->Run(memory); }});
      return;
    }
    Sink sink(tasks);
    const ScopedStreamCapture scope(sink);
    Launch(nodes, tensors);
  }

  std::shared_ptr<Tape> tape_;
  std::vector<Nodes> launched_;  // by each call
  Mutex mutex_;
  // In the order of their last use; next_ is the oldest.
  std::vector<CallPtr> calls_ ABSL_GUARDED_BY(mutex_);
  std::size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<StreamExecutor> MakeCpuExecutor(const Graph& graph,
                                                const CapturedPlan& plan,
                                                Stream& stream,
                                                const char* name) {
  return std::make_unique<CpuExecutor>(graph, plan, stream, name);
}

}  // namespace d2l::ir
