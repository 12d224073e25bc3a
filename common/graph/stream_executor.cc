#include "common/graph/stream_executor.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/memory/memory.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"

namespace d2l::ir {
namespace {

// Constants that are written or returned are copies, made anew by each call.
Function WithCopiedConstants(const Function& function) {
  const Storages storages(function);
  Function result = function;
  result.nodes.clear();
  std::vector<ValueId> map(function.values.size());
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<int>(i);
  for (Node node : function.nodes) {
    for (ValueId& value : node.inputs) value = map[value];
    if (node.target >= 0) node.target = map[node.target];
    const bool copied =
        node.kind == NodeKind::kConstant &&
        (storages.pinned(node.outputs[0]) || storages.escapes(node.outputs[0]));
    result.nodes.push_back(std::move(node));
    if (!copied) continue;
    const ValueId constant = result.nodes.back().outputs[0];
    const Tensor& type = function.type(constant);
    map[constant] = result.AddOp(
        CopyPrimitive("clone", {type.shape(), type.dtype(), type.device()}),
        {constant}, result.nodes.back().op.requested_at);
  }
  for (ValueId& value : result.returns) value = map[value];
  return result;
}

// Whether the node launches something.
bool Runs(const Node& node) {
  return node.kind == NodeKind::kFused || node.kind == NodeKind::kInPlace ||
         (node.kind == NodeKind::kOp && !IsView(*node.op.primitive) &&
          node.op.primitive->effect() != Effect::kUninitialized);
}

}  // namespace

CapturedPlan::CapturedPlan(const Function& program,
                           const std::vector<CompiledRegion>& compiled,
                           std::int64_t max_copied_bytes)
    : function(WithCopiedConstants(program)), storages(function) {
  const std::size_t count = function.values.size();
  places.assign(count, Place::kNowhere);
  std::vector<bool> in_arena(count, false);
  const auto is_small = [&](ValueId value) {
    return BytesOf(function.type(value)) <= max_copied_bytes;
  };
  for (const ValueId value : function.arguments) {
    in_arena[value] = is_small(value) && !storages.escapes(value) &&
                      function.type(value).is_contiguous();
    places[value] = in_arena[value] ? Place::kArena : Place::kArgument;
  }
  for (const Node& node : function.nodes) {
    for (const ValueId value : node.outputs) {
      if (storages.root[value] != value) continue;
      if (node.kind == NodeKind::kWeight || node.kind == NodeKind::kConstant) {
        places[value] = Place::kProgram;
        continue;
      }
      const bool escapes = storages.escapes(value);
      in_arena[value] = !escapes || is_small(value);
      places[value] = in_arena[value] ? Place::kArena : Place::kResult;
      if (escapes) results.push_back({value, in_arena[value]});
    }
  }
  std::vector<bool> is_written(count, false);
  for (const Node& node : function.nodes) {
    for (const ValueId value : WrittenBy(node)) {
      is_written[storages.root[value]] = true;
    }
  }
  for (const Node& node : function.nodes) {
    if (node.kind == NodeKind::kWeight && is_written[node.outputs[0]]) {
      written.push_back(node.index);
    }
  }
  // A value that is copied at the end must stay until then. It does, because it
  // escapes (LastUses).
  memory = PlanMemory(function, storages, in_arena);
  for (std::size_t i = 0; i < count; ++i) {
    places[i] = places[storages.root[i]];
  }
  strips.resize(function.nodes.size());
  const bool on_gpu =
      count > 0 && function.values[0].type.device().type() == DeviceType::kCuda;
  std::size_t region = 0;
  for (std::size_t i = 0; i < strips.size(); ++i) {
    const Node& node = function.nodes[i];
    if (node.kind != NodeKind::kFused || on_gpu) continue;
    if (compiled.empty() || compiled[region].function == nullptr) {
      strips[i] = std::make_shared<const Strips>(*node.body);
    } else {
      strips[i] = std::make_shared<const Strips>(
          *node.body, compiled[region].function, compiled[region].loops);
    }
    ++region;
  }
}

bool CapturedPlan::IsLaunched(const Node& node) const {
  const auto is_of_call = [this](ValueId value) {
    return places[value] == Place::kArgument || places[value] == Place::kResult;
  };
  return (node.kind == NodeKind::kOp &&
          node.op.primitive->effect() == Effect::kRandom) ||
         (node.target >= 0 && is_of_call(node.target)) ||
         std::any_of(node.inputs.begin(), node.inputs.end(), is_of_call) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_of_call);
}

StreamExecutor::StreamExecutor(const Graph& graph, const CapturedPlan& plan,
                               Stream& stream, const char* name)
    : graph_(graph),
      plan_(plan),
      stream_(stream),
      name_(name),
      tensors_(plan.function.values.size()) {
  const Function& f = plan.function;
  arena_ =
      Memory(stream.device())
          .Allocate(static_cast<std::size_t>(plan.memory.arena_bytes), stream);
  for (const Node& node : f.nodes) {
    if (node.kind == NodeKind::kWeight) {
      tensors_[node.outputs[0]] = graph.weights[node.index].tensor;
    } else if (node.kind == NodeKind::kConstant) {
      tensors_[node.outputs[0]] = node.constant;
      node.constant.storage()->RecordStream(stream);
    }
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    PlaceValue(static_cast<ValueId>(i));
  }
}

std::vector<Tensor> StreamExecutor::Run(absl::Span<const Tensor> inputs,
                                        SourceLocation at) {
  const Function& f = plan_.function;
  Copies copies;
  std::vector<Tensor> results(plan_.results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [root, copied] = plan_.results[i];
    const Tensor& type = f.type(root);
    const auto bytes = static_cast<std::size_t>(BytesOf(type));
    results[i] = Tensor(Memory(stream_.device()).Allocate(bytes, stream_),
                        stream_.device(), type.dtype(), type.shape());
    if (copied && bytes > 0) {
      copies.after.push_back({results[i].data(), tensors_[root].data(), bytes});
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId value = f.arguments[i];
    if (plan_.places[value] != CapturedPlan::Place::kArena ||
        inputs[i].numel() == 0) {
      continue;
    }
    copies.before.push_back({tensors_[value].data(), inputs[i].data(),
                             static_cast<std::size_t>(BytesOf(f.type(value)))});
  }

  OpLabel label(name_, at);
  for (const Tensor& x : inputs) {
    label.AddInput({x.shape().data(), x.shape().size()});
  }
  // Comes before Enqueue, which may throw after a part of the work is enqueued.
  for (const Tensor& x : inputs) x.storage()->RecordStream(stream_);
  for (const Weight& weight : graph_.weights) {
    weight.tensor.storage()->RecordStream(stream_);
  }
  const std::uint64_t number =
      Enqueue(label, inputs, results, std::move(copies));
  // Checks once more, as an operation does: another thread may have noticed and
  // reported a failure since the first check.
  for (const Tensor& x : inputs) CheckReadable(x, stream_, name_, at);
  for (const Tensor& result : results) {
    result.storage()->MarkWritten(stream_, number);
  }
  for (const int weight : plan_.written) {
    graph_.weights[weight].tensor.storage()->MarkWritten(stream_, number);
  }
  if (LaunchBlocking()) stream_.Finish(number, name_, at);

  std::vector<Tensor> returned;
  returned.reserve(f.returns.size());
  for (const ValueId value : f.returns) {
    returned.push_back(OfCall(value, inputs, results));
  }
  return returned;
}

std::vector<StreamExecutor::Nodes> StreamExecutor::Launches() const {
  std::vector<Nodes> launches;
  // The last launch, if updates may join it, and the memory of its operands.
  const AxpbyPrimitive* last = nullptr;
  std::set<ValueId> used, written;
  for (const Node& node : plan_.function.nodes) {
    if (!Runs(node)) {
      // What is not initialised may be in memory that is now free.
      if (node.kind == NodeKind::kOp && !IsView(*node.op.primitive)) {
        last = nullptr;
      }
      continue;
    }
    const auto* own =
        dynamic_cast<const AxpbyPrimitive*>(node.op.primitive.get());
    ValueId y = -1, x = -1;
    if (own != nullptr) {
      y = plan_.storages.root[node.inputs[0]];
      x = plan_.storages.root[node.inputs[1]];
      const bool overlaps = x == y && node.inputs[0] != node.inputs[1];
      if (node.target != node.inputs[0] || overlaps) own = nullptr;
    }
    const bool joins =
        own != nullptr && last != nullptr && own->alpha == last->alpha &&
        own->beta == last->beta && used.count(y) == 0 &&
        written.count(x) == 0 &&
        plan_.function.type(y).dtype() ==
            plan_.function.type(launches.back()[0]->target).dtype() &&
        plan_.IsLaunched(node) == plan_.IsLaunched(*launches.back()[0]);
    if (!joins) {
      launches.emplace_back();
      used.clear();
      written.clear();
    }
    launches.back().push_back(&node);
    last = own;
    used.insert({y, x});
    written.insert(y);
  }
  return launches;
}

Tensor StreamExecutor::In(const Tensor& base, std::int64_t offset,
                          ValueId value) const {
  const Tensor& type = plan_.function.type(value);
  return Tensor::View(base, offset + type.offset(), type.shape(),
                      type.strides());
}

void StreamExecutor::PlaceValue(ValueId value) {
  const ValueId root = plan_.storages.root[value];
  const Tensor& type = plan_.function.type(root);
  if (plan_.places[value] == CapturedPlan::Place::kArena) {
    const Tensor base(arena_, stream_.device(), type.dtype(), type.shape());
    tensors_[value] = In(base,
                         plan_.memory.offset[root] /
                             static_cast<std::int64_t>(DTypeSize(type.dtype())),
                         value);
  } else if (plan_.places[value] == CapturedPlan::Place::kProgram &&
             value != root) {
    tensors_[value] = In(tensors_[root], tensors_[root].offset(), value);
  }
}

Tensor StreamExecutor::OfCall(ValueId value, absl::Span<const Tensor> inputs,
                              const std::vector<Tensor>& results) const {
  const ValueId root = plan_.storages.root[value];
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (plan_.results[i].root != root) continue;
    return value == root ? results[i] : In(results[i], 0, value);
  }
  const std::vector<ValueId>& arguments = plan_.function.arguments;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (arguments[i] != root) continue;
    return value == root ? inputs[i] : In(inputs[i], inputs[i].offset(), value);
  }
  return tensors_[value];  // a weight
}

const Tensor& StreamExecutor::At(const std::vector<Tensor>& of_call,
                                 ValueId value) const {
  return !of_call.empty() && of_call[value].defined() ? of_call[value]
                                                      : tensors_[value];
}

void StreamExecutor::LaunchByCalls(const Nodes& nodes) {
  const auto need = [this](ValueId value) {
    const CapturedPlan::Place place = plan_.places[value];
    if (place == CapturedPlan::Place::kArgument ||
        place == CapturedPlan::Place::kResult) {
      of_call_.push_back(value);
    }
  };
  for (const Node* node : nodes) {
    for (const ValueId value : node->inputs) need(value);
    for (const ValueId value : node->outputs) need(value);
    if (node->target >= 0) need(node->target);
  }
}

std::vector<Tensor> StreamExecutor::TensorsOf(
    absl::Span<const Tensor> inputs, const std::vector<Tensor>& results) const {
  std::vector<Tensor> tensors(of_call_.empty() ? 0 : tensors_.size());
  for (const ValueId value : of_call_) {
    if (!tensors[value].defined()) {
      tensors[value] = OfCall(value, inputs, results);
    }
  }
  return tensors;
}

std::uint64_t StreamExecutor::Launch(const Nodes& nodes,
                                     const std::vector<Tensor>& of_call) const {
  absl::InlinedVector<const Tensor*, 4> inputs;
  const Node& node = *nodes[0];
  OpLabel label(node.op.primitive->name(), node.op.requested_at,
                node.op.requested_by);
  for (const Node* one : nodes) {
    for (const ValueId value : one->inputs) {
      inputs.push_back(&At(of_call, value));
      const Shape& shape = inputs.back()->shape();
      label.AddInput({shape.data(), shape.size()});
    }
  }
  const ValueId output = node.target >= 0 ? node.target : node.outputs[0];
  return node.op.primitive->Launch(
      {stream_, label, inputs, At(of_call, output)});
}

}  // namespace d2l::ir
