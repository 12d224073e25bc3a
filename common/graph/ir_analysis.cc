// What passes and executors ask of a program.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/graph/ir.h"
#include "common/kernels/op_tables.h"
#include "common/ops/primitive/primitives.h"

namespace d2l::ir {

Storages::Storages(const Function& function) {
  const std::size_t count = function.values.size();
  root.resize(count);
  pinned_.resize(count);
  escapes_.resize(count);
  external_.resize(count);
  for (std::size_t i = 0; i < count; ++i) root[i] = static_cast<ValueId>(i);
  for (const ValueId value : function.arguments) external_[value] = true;
  bool pin_external = false;
  for (const Node& node : function.nodes) {
    switch (node.kind) {
      case NodeKind::kWeight:
        external_[node.outputs[0]] = true;
        break;
      case NodeKind::kOp:
        if (IsView(*node.op.primitive)) {
          root[node.outputs[0]] = root[node.inputs[0]];
        }
        break;
      case NodeKind::kInPlace:
        pinned_[root[node.target]] = true;
        if (external(node.target)) writes_external = true;
        break;
      case NodeKind::kCall:
        // It may write to them, and return them.
        pin_external = true;
        for (const ValueId value : node.inputs) pinned_[root[value]] = true;
        for (const ValueId value : node.outputs) pinned_[value] = true;
        break;
      case NodeKind::kConstant:
      case NodeKind::kFused:
        break;
    }
  }
  if (pin_external || writes_external) {
    for (std::size_t i = 0; i < count; ++i) {
      if (external_[i]) pinned_[i] = true;
    }
  }
  for (const ValueId value : function.returns) escapes_[root[value]] = true;
}

bool Storages::touches_pinned(const Node& node) const {
  const auto is_pinned = [this](ValueId value) { return pinned(value); };
  return node.kind == NodeKind::kInPlace ||
         std::any_of(node.inputs.begin(), node.inputs.end(), is_pinned) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_pinned);
}

bool MayFailLate(const Node& node, const Function& function) {
  return node.op.primitive != nullptr && !node.inputs.empty() &&
         node.op.primitive->MayFailLate(function.type(node.inputs[0]).dtype());
}

bool HasEffect(const Node& node, const Function& function) {
  if (node.kind == NodeKind::kInPlace || node.kind == NodeKind::kCall) {
    return true;
  }
  return node.kind == NodeKind::kOp &&
         (node.op.primitive->effect() == Effect::kRandom ||
          MayFailLate(node, function));
}

Steps StepsOf(const Tensor& operand, const Shape& shape) {
  if (!operand.is_contiguous()) return Steps::kOther;
  if (operand.shape() == shape) return Steps::kEach;
  if (operand.numel() == 1) return Steps::kOne;
  int first = 0;
  while (operand.size(first) == 1) ++first;
  const int missing = shape.rank() - operand.dim();
  for (int i = first; i < operand.dim(); ++i) {
    if (operand.size(i) != shape[missing + i]) return Steps::kOther;
  }
  return Steps::kRow;
}

bool IsFusable(const Node& node, const Function& function) {
  if (node.kind != NodeKind::kOp || HasEffect(node, function)) return false;
  const Primitive* const primitive = node.op.primitive.get();
  const auto* binary = dynamic_cast<const BinaryPrimitive*>(primitive);
  if (binary != nullptr
          ? binary->op == kernels::BinaryOp::kPow
          : dynamic_cast<const UnaryPrimitive*>(primitive) == nullptr &&
                dynamic_cast<const WherePrimitive*>(primitive) == nullptr &&
                dynamic_cast<const CopyPrimitive*>(primitive) == nullptr) {
    return false;
  }
  const Tensor& output = function.type(node.outputs[0]);
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId value) {
                       const Tensor& input = function.type(value);
                       return input.device() == output.device() &&
                              StepsOf(input, output.shape()) != Steps::kOther;
                     });
}

int CountOperations(const Graph& graph) {
  int count = 0;
  for (const Function& function : graph.functions) {
    for (const Node& node : function.nodes) {
      switch (node.kind) {
        case NodeKind::kWeight:
        case NodeKind::kConstant:
          break;
        case NodeKind::kOp:
          count += IsView(*node.op.primitive) ? 0 : 1;
          break;
        case NodeKind::kInPlace:
        case NodeKind::kCall:
        case NodeKind::kFused:
          ++count;
      }
    }
  }
  return count;
}

void ReplaceUses(const std::vector<ValueId>& map, Function& function) {
  const auto replace = [&map](ValueId& value) { value = map[value]; };
  for (Node& node : function.nodes) {
    std::for_each(node.inputs.begin(), node.inputs.end(), replace);
    if (node.target >= 0) replace(node.target);
  }
  std::for_each(function.returns.begin(), function.returns.end(), replace);
}

std::vector<int> LastUses(const Function& function, const Storages& storages) {
  std::vector<int> last(function.values.size(), -1);
  const int count = static_cast<int>(function.nodes.size());
  for (int i = 0; i < count; ++i) {
    const Node& node = function.nodes[i];
    for (const ValueId value : node.inputs) last[storages.root[value]] = i;
    if (node.target >= 0) last[storages.root[node.target]] = i;
    for (const ValueId value : node.outputs) last[storages.root[value]] = i;
  }
  for (const ValueId value : function.returns) {
    last[storages.root[value]] = count;
  }
  for (std::size_t i = 0; i < last.size(); ++i) {
    last[i] = last[storages.root[i]];
  }
  return last;
}

void DropUnusedValues(Function& function) {
  std::vector<ValueId> map(function.values.size(), -1);
  std::vector<Value> values;
  const auto keep = [&](ValueId& value) {
    map[value] = static_cast<ValueId>(values.size());
    values.push_back(std::move(function.values[value]));
    value = map[value];
  };
  for (ValueId& value : function.arguments) keep(value);
  for (Node& node : function.nodes) {
    for (ValueId& value : node.outputs) keep(value);
  }
  ReplaceUses(map, function);
  function.values = std::move(values);
}

}  // namespace d2l::ir
