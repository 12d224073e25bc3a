#include <vector>

#include "common/graph/passes/passes.h"
#include "common/ops/read.h"

namespace d2l::ir {
namespace {

void FoldFunction(Function& function) {
  const Storages storages(function);
  // The values that are known: constants and views of them.
  std::vector<Tensor> known(function.values.size());
  for (Node& node : function.nodes) {
    if (node.kind == NodeKind::kConstant) {
      if (!storages.pinned(node.outputs[0])) {
        known[node.outputs[0]] = node.constant;
      }
      continue;
    }
    if (node.kind != NodeKind::kOp || node.outputs.size() != 1 ||
        node.op.primitive->effect() != Effect::kPure ||
        storages.touches_pinned(node) || HasEffect(node, function)) {
      continue;
    }
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
    // A creation that the program returns is as cheap as a copy of it.
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

}  // namespace

void Fold(Graph& graph) {
  for (Function& function : graph.functions) FoldFunction(function);
}

}  // namespace d2l::ir
