#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/passes/passes.h"

namespace d2l::ir {
namespace {

void Merge(Function& function) {
  const Storages storages(function);
  std::vector<ValueId> map(function.values.size());
  std::iota(map.begin(), map.end(), 0);
  std::unordered_map<std::string, ValueId> seen;
  for (Node& node : function.nodes) {
    for (ValueId& value : node.inputs) value = map[value];
    if (node.target >= 0) node.target = map[node.target];
    if (node.kind != NodeKind::kOp || node.outputs.size() != 1 ||
        node.op.primitive->effect() != Effect::kPure ||
        storages.touches_pinned(node) || HasEffect(node, function)) {
      continue;
    }
    std::string key = absl::StrCat(node.op.primitive->name(), "(",
                                   absl::StrJoin(node.inputs, ","), ")");
    for (const Attribute& attribute : node.op.primitive->attributes()) {
      absl::StrAppend(&key, " ", attribute.first, "=", attribute.second);
    }
    const ValueId output = node.outputs[0];
    const auto [first, is_new] = seen.emplace(key, output);
    // Two results that are returned do not share memory.
    if (is_new || storages.escapes(output)) continue;
    map[output] = first->second;
  }
  ReplaceUses(map, function);
}

}  // namespace

void MergeCommonSubexpressions(Graph& graph) {
  for (Function& function : graph.functions) Merge(function);
}

}  // namespace d2l::ir
