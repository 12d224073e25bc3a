#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/graph/passes/passes.h"

namespace d2l::ir {
namespace {

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

void RemoveDeadCode(Graph& graph) {
  for (Function& function : graph.functions) RemoveDead(function);
}

}  // namespace d2l::ir
