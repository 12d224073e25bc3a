#include "common/graph/passes/passes.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/timer.h"
#include "common/ops/primitive/replay.h"
#include "common/ops/read.h"

namespace d2l::ir {
namespace {

// Whether it always computes the same, and nothing writes its memory.
bool IsRepeatable(const Node& node, const Function& function,
                  const Storages& storages) {
  return node.kind == NodeKind::kOp &&
         node.op.primitive->effect() == Effect::kPure &&
         !storages.touches_pinned(node) && !HasEffect(node, function);
}

void FoldFunction(Function& function) {
  const Storages storages(function);
  // The known values: constants and views of them.
  std::vector<Tensor> known(function.values.size());
  for (Node& node : function.nodes) {
    if (node.kind == NodeKind::kConstant) {
      if (!storages.pinned(node.outputs[0])) {
        known[node.outputs[0]] = node.constant;
      }
      continue;
    }
    if (!IsRepeatable(node, function, storages)) continue;
    std::vector<const Tensor*> inputs;
    for (const ValueId value : node.inputs) {
      if (known[value].defined()) inputs.push_back(&known[value]);
    }
    if (inputs.size() != node.inputs.size()) continue;
    const ValueId output = node.outputs[0];
    if (IsView(*node.op.primitive)) {
      known[output] = Replay(node.op, inputs);
      continue;
    }
    // Returning a creation costs no more than copying a constant.
    if ((storages.escapes(output) && inputs.empty()) ||
        BytesOf(function.type(output)) > kMaxFoldedBytes) {
      continue;
    }
    known[output] = Replay(node.op, inputs);
    WaitToRead(known[output]);
    node.kind = NodeKind::kConstant;
    node.constant = known[output];
    node.inputs.clear();
    node.op.primitive = nullptr;
  }
}

void Merge(Function& function) {
  const Storages storages(function);
  std::vector<ValueId> map(function.values.size());
  std::iota(map.begin(), map.end(), 0);
  std::unordered_map<std::string, ValueId> seen;
  for (Node& node : function.nodes) {
    for (ValueId& value : node.inputs) value = map[value];
    if (node.target >= 0) node.target = map[node.target];
    if (!IsRepeatable(node, function, storages)) continue;
    std::string key = absl::StrCat(node.op.primitive->name(), "(",
                                   absl::StrJoin(node.inputs, ","), ")");
    for (const Attribute& attribute : node.op.primitive->attributes()) {
      absl::StrAppend(&key, " ", attribute.first, "=", attribute.second);
    }
    const ValueId output = node.outputs[0];
    const auto [first, is_new] = seen.emplace(key, output);
    // Two returned results must not share memory.
    if (is_new || storages.escapes(output)) continue;
    map[output] = first->second;
  }
  ReplaceUses(map, function);
}

void RemoveDead(Function& function) {
  std::vector<bool> used(function.values.size(), false);
  for (const ValueId value : function.returns) used[value] = true;
  std::vector<bool> alive(function.nodes.size(), false);
  for (std::size_t i = function.nodes.size(); i-- > 0;) {
    const Node& node = function.nodes[i];
    alive[i] = HasEffect(node, function) ||
               std::any_of(node.outputs.begin(), node.outputs.end(),
                           [&](ValueId value) { return used[value]; });
    if (!alive[i]) continue;
    for (const ValueId value : node.inputs) used[value] = true;
    if (node.target >= 0) used[node.target] = true;
  }
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < alive.size(); ++i) {
    if (alive[i]) nodes.push_back(std::move(function.nodes[i]));
  }
  function.nodes = std::move(nodes);
  DropUnusedValues(function);
}

}  // namespace

void Fold(Graph& graph) {
  for (Function& function : graph.functions) FoldFunction(function);
}

void MergeCommonSubexpressions(Graph& graph) {
  for (Function& function : graph.functions) Merge(function);
}

void RemoveDeadCode(Graph& graph) {
  for (Function& function : graph.functions) RemoveDead(function);
}

std::string PassReport::ToString() const {
  return absl::StrFormat("%s: %d operations, %d bytes at the peak, %.3f ms",
                         name, operations, peak_bytes, 1e3 * seconds);
}

std::vector<PassReport> Optimize(
    Graph& graph,
    const std::function<void(const std::string&, const Graph&)>& observe) {
  struct Pass {
    const char* name;
    void (*run)(Graph&);
  };
  // Folding and simplifying leave dead code, which would keep groups from being
  // fused.
  static constexpr Pass kPasses[] = {
      {"as it came", [](Graph&) {}},
      {"inline", Inline},
      {"fold", Fold},
      {"simplify", Simplify},
      {"common subexpressions", MergeCommonSubexpressions},
      {"dead code", RemoveDeadCode},
      {"fuse", Fuse},
  };
  std::vector<PassReport> reports;
  for (const Pass& pass : kPasses) {
    const Timer timer;
    pass.run(graph);
    const double seconds = timer.Seconds();
    reports.push_back(
        {pass.name, CountOperations(graph), PeakBytes(graph), seconds});
    if (observe) observe(pass.name, graph);
  }
  const Timer timer;
  const MemoryPlan plan = PlanMemory(graph.main());
  reports.push_back({"memory plan", reports.back().operations, plan.arena_bytes,
                     timer.Seconds()});
  return reports;
}

}  // namespace d2l::ir
