#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"

namespace d2l::ir {
namespace {

using RegionPredicate = absl::FunctionRef<bool(const Function& body)>;

class Inliner {
 public:
  Inliner(const Graph& graph, RegionPredicate unfuse)
      : graph_(graph), unfuse_(unfuse), weights_(graph.weights.size(), -1) {}

  Function Run() {
    const Function& main = graph_.main();
    to_.name = main.name;
    std::vector<ValueId> arguments;
    for (const ValueId value : main.arguments) {
      arguments.push_back(
          to_.AddArgument(main.type(value), main.values[value].name));
    }
    to_.returns = Copy(main, arguments, /*keeps_names=*/true, {});
    return std::move(to_);
  }

 private:
  void CheckCount(std::size_t count) const {
    if (count < kMaxNodes) return;
    throw std::invalid_argument(absl::StrFormat(
        "[inline] %s has more than %d operations", to_.name, kMaxNodes));
  }

  // Returns the values that `from` returns.
  std::vector<ValueId> Copy(const Function& from,
                            const std::vector<ValueId>& arguments,
                            bool keeps_names, SourceLocation called_at) {
    std::vector<ValueId> map(from.values.size(), -1);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      map[from.arguments[i]] = arguments[i];
    }
    CheckCount(++copied_);  // also for a function that only calls
    for (const Node& node : from.nodes) {
      Node copy = node;
      for (ValueId& value : copy.inputs) value = map[value];
      if (copy.target >= 0) copy.target = map[copy.target];
      if (copy.op.primitive != nullptr && !copy.op.requested_by.known()) {
        copy.op.requested_by = called_at;
      }
      std::vector<ValueId> outputs;
      if (node.kind == NodeKind::kCall) {
        outputs = Copy(graph_.functions[node.index], copy.inputs, false,
                       node.op.requested_at);
      } else if (node.kind == NodeKind::kFused && unfuse_(*node.body)) {
        outputs = Copy(*node.body, copy.inputs, false, {});
      } else if (node.kind == NodeKind::kWeight && weights_[node.index] >= 0) {
        outputs = {weights_[node.index]};
      } else {
        CheckCount(to_.nodes.size());
        outputs = to_.Add(std::move(copy), &graph_).outputs;
        if (node.kind == NodeKind::kWeight) weights_[node.index] = outputs[0];
      }
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        map[node.outputs[i]] = outputs[i];
        // A returned value may have its name already.
        std::string& name = to_.values[outputs[i]].name;
        if (keeps_names && name.empty()) {
          name = from.values[node.outputs[i]].name;
        }
      }
    }
    std::vector<ValueId> returns;
    for (const ValueId value : from.returns) returns.push_back(map[value]);
    return returns;
  }

  const Graph& graph_;
  const RegionPredicate unfuse_;
  std::size_t copied_ = 0;        // functions
  std::vector<ValueId> weights_;  // the value of each
  Function to_;
};

void Inline(Graph& graph, RegionPredicate unfuse) {
  Function main = Inliner(graph, unfuse).Run();
  graph.functions.clear();
  graph.functions.push_back(std::move(main));
}

}  // namespace

void Inline(Graph& graph) {
  if (graph.functions.size() > 1) {
    Inline(graph, [](const Function&) { return false; });
  }
}

void Unfuse(Graph& graph, RegionPredicate which) { Inline(graph, which); }

}  // namespace d2l::ir
