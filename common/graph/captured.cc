#include "common/graph/captured.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/stream_capture.h"
#include "common/device/cuda/stream/cuda_graph.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/memory/memory.h"
#include "common/graph/captured_plan.h"
#include "common/graph/generated/cpp_code.h"
#include "common/graph/generated/load_cpp.h"
#include "common/graph/interpreter.h"
#include "common/graph/passes/passes.h"
#include "common/graph/strips.h"
#include "common/kernels/tf32.h"
#include "common/ops/primitive/record.h"

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

using Copy = CudaGraph::Copy;

// What a call adds to the tasks that are there.
struct Call {
  absl::InlinedVector<Copy, 1> before;
  absl::InlinedVector<Copy, 1> after;
  std::vector<Task> tasks;
  std::vector<std::size_t> ends;  // of each launched node's
};
// The worker frees what the caller has allocated. Up to this size glibc's
// malloc needs no lock for that; waiting for it took half of a small call.
static_assert(sizeof(Call) <= 120);

// The tasks in their order: of nodes that were captured, and places for those
// of nodes that each call launches. It owns no memory of a device, so that it
// may be destroyed on a worker.
struct Tape {
  struct Item {
    std::size_t begin, end;  // in tasks, or
    int launched = -1;       // number in Call::ends
  };

  void Run(const Call& call) const {
    for (const Copy& copy : call.before) {
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
    for (const Copy& copy : call.after) {
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

// Why a CUDA graph cannot hold the program; empty if it can.
std::string WhyNoGraph(const Function& function) {
  for (const Node& node : function.nodes) {
    const bool is_random = node.kind == NodeKind::kOp &&
                           node.op.primitive->effect() == Effect::kRandom;
    if (is_random || MayFailLate(node, function)) {
      return absl::StrCat("a CUDA graph cannot hold ",
                          node.op.primitive->name(), " at ",
                          node.op.requested_at.ToString(),
                          is_random ? ", which draws other numbers in each call"
                                    : ", which may fail in a call");
    }
  }
  return "";
}

void CheckReadable(const Tensor& x, const char* name, SourceLocation at) {
  const Storage& storage = *x.storage();
  if (storage.writer() == nullptr || !storage.writer()->ever_failed()) return;
  ThrowIfFailed(*storage.writer(), storage.written_by(), name, at);
}

}  // namespace

// The program on one stream, with its arena.
class Captured::OnStream {
 public:
  OnStream(const Graph& graph, const CapturedPlan& plan, Stream& stream,
           const char* name)
      : graph_(graph),
        plan_(plan),
        stream_(stream),
        name_(name),
        tensors_(plan.function.values.size()),
        tape_(std::make_shared<Tape>()) {
    const Function& f = plan.function;
    arena_ = Memory(stream.device())
                 .Allocate(static_cast<std::size_t>(plan.memory.arena_bytes),
                           stream);
    for (std::size_t i = 0; i < f.nodes.size(); ++i) {
      const Node& node = f.nodes[i];
      if (node.kind == NodeKind::kWeight) {
        tensors_[node.outputs[0]] = graph.weights[node.index].tensor;
      } else if (node.kind == NodeKind::kConstant) {
        tensors_[node.outputs[0]] = node.constant;
        node.constant.storage()->RecordStream(stream);
      }
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      PlaceValue(static_cast<int>(i));
    if (stream.device().type() == DeviceType::kCuda) {
      cuda_graph_.emplace(static_cast<CudaStream&>(stream), [&] {
        for (const Node& node : f.nodes) {
          if (Runs(node)) Request(node, {});
        }
      });
      return;
    }
    for (std::size_t i = 0; i < f.nodes.size(); ++i) {
      const Node& node = f.nodes[i];
      if (!Runs(node)) continue;
      if (plan.IsLaunched(node)) {
        Tape::Item item = {0, 0, static_cast<int>(launched_.size())};
        tape_->items.push_back(item);
        launched_.push_back(i);
        continue;
      }
      const std::size_t begin = tape_->tasks.size();
      Launch(i, tensors_, tape_->tasks);
      std::vector<Tape::Item>& items = tape_->items;
      if (!items.empty() && items.back().launched < 0) {
        items.back().end = tape_->tasks.size();
      } else {
        items.push_back({begin, tape_->tasks.size()});
      }
    }
    // What launched nodes and results need of a call.
    std::vector<bool> needed(tensors_.size(), false);
    for (const std::size_t i : launched_) {
      const Node& node = f.nodes[i];
      for (const ValueId value : node.inputs) needed[value] = true;
      for (const ValueId value : node.outputs) needed[value] = true;
      if (node.target >= 0) needed[node.target] = true;
    }
    for (const ValueId value : f.returns) needed[value] = true;
    for (std::size_t i = 0; i < needed.size(); ++i) {
      const CapturedPlan::Place place = plan.places[i];
      if (needed[i] && (place == CapturedPlan::Place::kArgument ||
                        place == CapturedPlan::Place::kResult)) {
        of_call_.push_back(static_cast<int>(i));
      }
    }
  }

  std::vector<Tensor> Run(absl::Span<const Tensor> inputs, SourceLocation at) {
    const Function& f = plan_.function;
    auto call = std::make_unique<Call>();
    std::vector<Tensor> results(plan_.results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto& [root, copied] = plan_.results[i];
      const Tensor& type = f.type(root);
      const auto bytes = static_cast<std::size_t>(BytesOf(type));
      results[i] = Tensor(Memory(stream_.device()).Allocate(bytes, stream_),
                          stream_.device(), type.dtype(), type.shape());
      if (copied && bytes > 0) {
        call->after.push_back(
            {results[i].data(), tensors_[root].data(), bytes});
      }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueId value = f.arguments[i];
      if (plan_.places[value] != CapturedPlan::Place::kArena ||
          inputs[i].numel() == 0) {
        continue;
      }
      call->before.push_back({tensors_[value].data(), inputs[i].data(),
                              static_cast<std::size_t>(SpanOf(f.type(value)))});
    }
    if (!launched_.empty()) LaunchForCall(inputs, results, *call);

    OpLabel label(name_, at);
    for (const Tensor& x : inputs) {
      label.AddInput({x.shape().data(), x.shape().size()});
    }
    const std::uint64_t number =
        cuda_graph_.has_value()
            ? static_cast<CudaStream&>(stream_).Launch(
                  label,
                  [&](const CudaLaunch& to) {
                    cuda_graph_->Launch(to, call->before, call->after);
                  })
            : static_cast<CpuStream&>(stream_).Enqueue(
                  label,
                  [tape = tape_, call = std::move(call)] { tape->Run(*call); });
    for (const Tensor& x : inputs) {
      x.storage()->RecordStream(stream_);
      // Once more, as an operation does: another thread may have noticed and
      // reported a failure meanwhile.
      CheckReadable(x, name_, at);
    }
    for (const Weight& weight : graph_.weights) {
      weight.tensor.storage()->RecordStream(stream_);
    }
    for (const Tensor& result : results) {
      result.storage()->MarkWritten(stream_, number);
    }
    if (LaunchBlocking()) stream_.Finish(number, name_, at);

    std::vector<Tensor> returned;
    returned.reserve(f.returns.size());
    for (const ValueId value : f.returns) {
      returned.push_back(OfCall(value, inputs, results));
    }
    return returned;
  }

 private:
  static bool Runs(const Node& node) {
    return node.kind == NodeKind::kFused || node.kind == NodeKind::kInPlace ||
           (node.kind == NodeKind::kOp && !IsView(*node.op.primitive) &&
            node.op.primitive->effect() != Effect::kUninitialized);
  }

  // A value with the memory of `base`, the root that it has.
  Tensor In(const Tensor& base, std::int64_t offset, ValueId value) const {
    const Tensor& type = plan_.function.type(value);
    return Tensor::View(base, offset + type.offset(), type.shape(),
                        type.strides());
  }

  void PlaceValue(ValueId value) {
    const ValueId root = plan_.storages.root[value];
    const Tensor& type = plan_.function.type(root);
    if (plan_.places[value] == CapturedPlan::Place::kArena) {
      const Tensor base(arena_, stream_.device(), type.dtype(), type.shape());
      tensors_[value] =
          In(base,
             plan_.memory.offset[root] /
                 static_cast<std::int64_t>(DTypeSize(type.dtype())),
             value);
    } else if (plan_.places[value] == CapturedPlan::Place::kProgram &&
               value != root) {
      tensors_[value] = In(tensors_[root], tensors_[root].offset(), value);
    }
  }

  Tensor OfCall(ValueId value, absl::Span<const Tensor> inputs,
                const std::vector<Tensor>& results) const {
    const ValueId root = plan_.storages.root[value];
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (plan_.results[i].root != root) continue;
      return value == root ? results[i] : In(results[i], 0, value);
    }
    const std::vector<ValueId>& arguments = plan_.function.arguments;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (arguments[i] != root) continue;
      return value == root ? inputs[i]
                           : In(inputs[i], inputs[i].offset(), value);
    }
    return tensors_[value];  // a weight
  }

  void LaunchForCall(absl::Span<const Tensor> inputs,
                     const std::vector<Tensor>& results, Call& call) const {
    std::vector<Tensor> tensors(of_call_.empty() ? 0 : tensors_.size());
    for (const ValueId value : of_call_) {
      tensors[value] = OfCall(value, inputs, results);
    }
    for (const std::size_t i : launched_) {
      Launch(i, tensors, call.tasks);
      call.ends.push_back(call.tasks.size());
    }
  }

  // The tensor of the call; where there is none, that of the program.
  const Tensor& At(const std::vector<Tensor>& of_call, ValueId value) const {
    return !of_call.empty() && of_call[value].defined() ? of_call[value]
                                                        : tensors_[value];
  }

  // Adds the tasks of node i.
  void Launch(std::size_t i, const std::vector<Tensor>& tensors,
              std::vector<Task>& tasks) const {
    const Node& node = plan_.function.nodes[i];
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
          {label, [strips = plan_.strips[i], memory] { strips->Run(memory); }});
      return;
    }
    Sink sink(tasks);
    const ScopedStreamCapture scope(sink);
    Request(node, tensors);
  }

  // Has the kernel of the node's operation enqueue its work.
  void Request(const Node& node, const std::vector<Tensor>& tensors) const {
    absl::InlinedVector<const Tensor*, 4> inputs;
    OpLabel label(node.op.primitive->name(), node.op.requested_at,
                  node.op.requested_by);
    for (const ValueId value : node.inputs) {
      inputs.push_back(&At(tensors, value));
      const Shape& shape = inputs.back()->shape();
      label.AddInput({shape.data(), shape.size()});
    }
    const ValueId output = node.target >= 0 ? node.target : node.outputs[0];
    node.op.primitive->Launch({stream_, label, inputs, At(tensors, output)});
  }

  const Graph& graph_;
  const CapturedPlan& plan_;
  Stream& stream_;
  const char* const name_;
  StorageRef arena_;
  std::vector<Tensor> tensors_;  // by value: in the arena, or the program's
  std::shared_ptr<Tape> tape_;
  std::vector<std::size_t> launched_;    // nodes
  std::vector<ValueId> of_call_;         // values of launched nodes
  std::optional<CudaGraph> cuda_graph_;  // on a GPU, instead of the tape
};

Captured::Captured(Graph graph, const CapturedOptions& options)
    : graph_(std::move(graph)) {
  CheckValid(graph_);
  Inline(graph_);
  name_ = Intern(graph_.main().name);
  if (!graph_.main().values.empty()) {
    device_ = graph_.main().values[0].type.device();
  }
  const bool on_gpu = device_.type() == DeviceType::kCuda;
  if (on_gpu) Unfuse(graph_);
  const Function& main = graph_.main();
  if (std::any_of(main.values.begin(), main.values.end(),
                  [this](const Value& value) {
                    return value.type.device() != device_;
                  })) {
    not_captured_ = "it runs on several devices";
  } else if (Storages(main).writes_external) {
    not_captured_ = "it writes to an argument or a weight";
  } else if (on_gpu) {
    not_captured_ = WhyNoGraph(main);
  }
  if (not_captured_.empty()) {
    plan_ = std::make_unique<const CapturedPlan>(main, Generate(options),
                                                 on_gpu ? -1 : kMaxCopiedBytes);
  }
  if (!not_captured_.empty()) not_generated_ = not_captured_;
}

Captured::~Captured() = default;

std::int64_t Captured::arena_bytes() const {
  return plan_ == nullptr ? 0 : plan_->memory.arena_bytes;
}

std::vector<CompiledRegion> Captured::Generate(const CapturedOptions& options) {
  std::vector<CompiledRegion> compiled;
  if (!options.generate_cpp) {
    not_generated_ = "it was not asked for";
    return compiled;
  }
  if (device_.type() == DeviceType::kCuda) {
    not_generated_ = "it runs on a GPU";
    return compiled;
  }
  const Timer timer;
  GeneratedCpp code = GenerateCpp(graph_);
  generated_source_ = std::move(code.source);
  if (std::all_of(code.regions.begin(), code.regions.end(),
                  [](const GeneratedRegion& r) { return r.name.empty(); })) {
    not_generated_ = code.regions.empty() ? "no operations are fused"
                                          : "there is no C++ for its regions";
    return compiled;
  }
  const absl::StatusOr<CompiledCpp> library =
      LoadCpp(generated_source_, CppFlags(),
              {options.cache_directory, options.compile_seconds_limit});
  compile_seconds_ = timer.Seconds();
  if (!library.ok()) {
    not_generated_ = std::string(library.status().message());
    return compiled;
  }
  for (GeneratedRegion& region : code.regions) {
    void* const function =
        region.name.empty() ? nullptr : library->Function(region.name);
    compiled.push_back(
        {reinterpret_cast<RegionFn>(function), std::move(region.loops)});
  }
  return compiled;
}

std::string Captured::not_captured() const {
  MutexLock lock(mutex_);
  return not_captured_;
}

Captured::OnStream* Captured::On(Stream& stream) {
  const bool on_gpu = device_.type() == DeviceType::kCuda;
  MutexLock lock(mutex_);
  if (!not_captured_.empty()) return nullptr;
  const auto [it, first] =
      streams_.try_emplace({&stream, on_gpu && AllowTf32()});
  if (on_gpu && first) return nullptr;
  if (it->second != nullptr) return it->second.get();
  try {
    it->second = std::make_unique<OnStream>(graph_, *plan_, stream, name_);
  } catch (const OutOfMemoryError&) {
    if (!on_gpu) throw;  // the next call tries again
  } catch (const std::exception& error) {
    if (!on_gpu) throw;
    not_captured_ = error.what();
  }
  return it->second.get();
}

std::vector<Tensor> Captured::Run(absl::Span<const Tensor> inputs,
                                  SourceLocation at) {
  if (plan_ == nullptr || internal::Listeners().any() ||
      internal::enqueue_mode != internal::kMayEnqueue) {
    return ir::Run(graph_, inputs);
  }
  CheckArguments(graph_, inputs);
  for (const Tensor& x : inputs) CheckReadable(x, name_, at);
  for (const Weight& weight : graph_.weights) {
    CheckReadable(weight.tensor, name_, at);
  }
  OnStream* const on_stream = On(CurrentStream(device_));
  return on_stream == nullptr ? ir::Run(graph_, inputs)
                              : on_stream->Run(inputs, at);
}

}  // namespace d2l::ir
