#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/graph/passes/passes.h"

namespace d2l::ir {
namespace {

// A group's operations run together, at the place of the last of them. So
// nothing outside of the group may use one of its values before that.
struct Group {
  std::vector<int> nodes;
  bool closed = false;  // another node has used a value
  int merged_into = -1;
};

class Fuser {
 public:
  explicit Fuser(Function& function)
      : function_(function), storages_(function) {}

  void Run() {
    const int count = static_cast<int>(function_.nodes.size());
    group_of_value_.assign(function_.values.size(), -1);
    for (int i = 0; i < count; ++i) Visit(i);
    std::vector<int> uses(function_.values.size(), 0);
    for (const ValueId value : function_.returns) ++uses[value];
    for (const Node& node : function_.nodes) {
      for (const ValueId value : node.inputs) ++uses[value];
    }
    std::vector<bool> gone(count, false);
    std::map<int, Node> fused;  // by the place of the last node
    for (const Group& group : groups_) {
      if (group.merged_into >= 0 || group.nodes.size() < 2) continue;
      for (const int i : group.nodes) gone[i] = true;
      fused[group.nodes.back()] = MakeFused(group, uses);
    }
    std::vector<Node> nodes;
    for (int i = 0; i < count; ++i) {
      const auto place = fused.find(i);
      if (place != fused.end()) {
        nodes.push_back(std::move(place->second));
      } else if (!gone[i]) {
        nodes.push_back(std::move(function_.nodes[i]));
      }
    }
    function_.nodes = std::move(nodes);
    DropUnusedValues(function_);
  }

 private:
  int Find(int group) const {
    while (groups_[group].merged_into >= 0) group = groups_[group].merged_into;
    return group;
  }

  void Visit(int i) {
    const Node& node = function_.nodes[i];
    const bool fusable =
        IsFusable(node, function_) && !storages_.touches_pinned(node);
    int mine = -1;
    if (fusable) {
      const Shape& shape = function_.type(node.outputs[0]).shape();
      for (const ValueId value : node.inputs) {
        if (group_of_value_[value] < 0) continue;
        const int group = Find(group_of_value_[value]);
        const ValueId any = function_.nodes[groups_[group].nodes[0]].outputs[0];
        if (groups_[group].closed || function_.type(any).shape() != shape ||
            group == mine) {
          continue;
        }
        if (mine < 0) {
          mine = group;
        } else {
          Join(group, mine);
        }
      }
      if (mine < 0) {
        mine = static_cast<int>(groups_.size());
        groups_.emplace_back();
      }
      groups_[mine].nodes.push_back(i);
      group_of_value_[node.outputs[0]] = mine;
    }
    const auto use = [&](ValueId value) {
      if (group_of_value_[value] < 0) return;
      const int group = Find(group_of_value_[value]);
      if (group != mine) groups_[group].closed = true;
    };
    for (const ValueId value : node.inputs) use(value);
    if (node.target >= 0) use(node.target);
  }

  void Join(int from, int to) {
    std::vector<int>& nodes = groups_[to].nodes;
    std::vector<int> all(nodes.size() + groups_[from].nodes.size());
    std::merge(nodes.begin(), nodes.end(), groups_[from].nodes.begin(),
               groups_[from].nodes.end(), all.begin());
    nodes = std::move(all);
    groups_[from].merged_into = to;
  }

  Node MakeFused(const Group& group, const std::vector<int>& uses) {
    Node fused;
    fused.kind = NodeKind::kFused;
    Function body;
    std::map<ValueId, ValueId> inside;
    std::map<ValueId, int> inner_uses;
    for (const int i : group.nodes) {
      Node node = function_.nodes[i];
      for (ValueId& value : node.inputs) {
        ++inner_uses[value];
        const auto known = inside.find(value);
        if (known == inside.end()) {
          fused.inputs.push_back(value);
          inside[value] = body.AddArgument(function_.type(value));
        }
        value = inside[value];
      }
      const ValueId output = node.outputs[0];
      inside[output] = body.Add(std::move(node)).outputs[0];
    }
    for (const int i : group.nodes) {
      const ValueId output = function_.nodes[i].outputs[0];
      if (uses[output] == inner_uses[output]) continue;
      body.returns.push_back(inside[output]);
      fused.outputs.push_back(output);
    }
    const Node& last = function_.nodes[group.nodes.back()];
    fused.op.requested_at = last.op.requested_at;
    fused.op.requested_by = last.op.requested_by;
    fused.body = std::make_shared<const Function>(std::move(body));
    return fused;
  }

  Function& function_;
  const Storages storages_;
  std::vector<Group> groups_;
  std::vector<int> group_of_value_;
};

}  // namespace

void Fuse(Graph& graph) {
  for (Function& function : graph.functions) Fuser(function).Run();
}

}  // namespace d2l::ir
