// The interpreter: ir::Run.

#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/graph/ir.h"
#include "common/ops/copy.h"
#include "common/ops/primitive/replay.h"

namespace d2l::ir {
namespace {

std::vector<Tensor> RunFunction(const Graph& graph, const Function& function,
                                absl::Span<const Tensor> inputs) {
  const Storages storages(function);
  // The values to release after each node.
  const std::vector<int> last = LastUses(function, storages);
  std::vector<std::vector<ValueId>> dying(function.nodes.size());
  for (std::size_t value = 0; value < last.size(); ++value) {
    if (last[value] >= 0 && last[value] < static_cast<int>(dying.size())) {
      dying[last[value]].push_back(static_cast<ValueId>(value));
    }
  }
  std::vector<Tensor> values(function.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values[function.arguments[i]] = inputs[i];
  }
  std::vector<const Tensor*> operands;
  for (std::size_t i = 0; i < function.nodes.size(); ++i) {
    const Node& node = function.nodes[i];
    switch (node.kind) {
      case NodeKind::kWeight:
        values[node.outputs[0]] = graph.weights[node.index].tensor;
        break;
      case NodeKind::kConstant: {
        const ValueId value = node.outputs[0];
        // A copy of its own, if the program writes or returns it.
        const bool is_written_or_returned =
            storages.pinned(value) || storages.escapes(value);
        values[value] = is_written_or_returned
                            ? Clone(node.constant, node.op.requested_at)
                            : node.constant;
        break;
      }
      case NodeKind::kCall:
      case NodeKind::kFused: {
        std::vector<Tensor> arguments;
        for (const ValueId value : node.inputs) {
          arguments.push_back(values[value]);
        }
        const Function& callee = node.kind == NodeKind::kCall
                                     ? graph.functions[node.index]
                                     : *node.body;
        std::vector<Tensor> results = RunFunction(graph, callee, arguments);
        for (std::size_t k = 0; k < results.size(); ++k) {
          values[node.outputs[k]] = std::move(results[k]);
        }
        break;
      }
      case NodeKind::kOp:
      case NodeKind::kInPlace: {
        operands.clear();
        for (const ValueId value : node.inputs) {
          operands.push_back(&values[value]);
        }
        if (node.kind == NodeKind::kInPlace) {
          Replay(node.op, operands, values[node.target]);
        } else {
          values[node.outputs[0]] = Replay(node.op, operands);
        }
      }
    }
    for (const ValueId value : dying[i]) values[value] = Tensor();
  }
  std::vector<Tensor> results;
  for (const ValueId value : function.returns) results.push_back(values[value]);
  return results;
}

}  // namespace

void CheckArguments(const Graph& graph, absl::Span<const Tensor> inputs) {
  const Function& function = graph.main();
  if (inputs.size() != function.arguments.size()) {
    throw std::invalid_argument(
        absl::StrFormat("[%s] %d arguments wanted; got %d", function.name,
                        function.arguments.size(), inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& wanted = function.type(function.arguments[i]);
    if (!inputs[i].defined() || !SameType(inputs[i], wanted)) {
      throw std::invalid_argument(
          absl::StrFormat("[%s] argument %d is %s; got %s", function.name, i,
                          TypeToString(wanted),
                          inputs[i].defined() ? TypeToString(inputs[i])
                                              : "an undefined tensor"));
    }
  }
}

std::vector<Tensor> Run(const Graph& graph, absl::Span<const Tensor> inputs) {
  CheckArguments(graph, inputs);
  return RunFunction(graph, graph.main(), inputs);
}

}  // namespace d2l::ir
