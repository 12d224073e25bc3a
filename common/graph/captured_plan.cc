#include "common/graph/captured_plan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

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

}  // namespace

CapturedPlan::CapturedPlan(const Function& program,
                           const std::vector<CompiledRegion>& compiled,
                           std::int64_t max_copied_bytes)
    : function(WithCopiedConstants(program)), storages(function) {
  const bool all_copied = max_copied_bytes < 0;
  const std::size_t count = function.values.size();
  places.assign(count, Place::kNowhere);
  std::vector<bool> in_arena(count, false);
  const auto is_small = [&](ValueId value) {
    return all_copied || BytesOf(function.type(value)) <= max_copied_bytes;
  };
  for (const ValueId value : function.arguments) {
    in_arena[value] =
        all_copied || (is_small(value) && !storages.escapes(value) &&
                       function.type(value).is_contiguous());
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
  // What is copied at the end is there until then: LastUses says so of what
  // escapes.
  memory = PlanMemory(function, storages, in_arena);
  for (std::size_t i = 0; i < count; ++i) {
    places[i] = places[storages.root[i]];
  }
  strips.resize(function.nodes.size());
  std::size_t region = 0;
  for (std::size_t i = 0; i < strips.size(); ++i) {
    const Node& node = function.nodes[i];
    if (node.kind != NodeKind::kFused) continue;
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

}  // namespace d2l::ir
