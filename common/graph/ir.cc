#include "common/graph/ir.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/kernels/op_tables.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/read.h"

namespace d2l::ir {
namespace {

// A contiguous type may have other strides along dimensions of size 1.
bool SameSteps(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0) return true;
  for (int i = 0; i < a.dim(); ++i) {
    if (a.size(i) > 1 && a.strides()[i] != b.strides()[i]) return false;
  }
  return true;
}

}  // namespace

Tensor TypeOf(const ValueSpec& spec) {
  return Tensor(StorageRef(), spec.device, spec.dtype, spec.shape);
}

Tensor TypeOf(const Tensor& x) {
  return Tensor::View(TypeOf(ValueSpec{x.shape(), x.dtype(), x.device()}),
                      x.defined() ? 0 : x.offset(), x.shape(), x.strides());
}

bool SameType(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.device() == b.device() &&
         a.shape() == b.shape() && SameSteps(a, b);
}

std::string TypeToString(const Tensor& type) {
  std::string text = absl::StrCat(DTypeName(type.dtype()), "[",
                                  absl::StrJoin(type.shape(), ", "), "]");
  if (!type.is_contiguous()) {
    absl::StrAppend(&text, " strides ", type.strides().ToString());
  }
  if (type.device() != Device()) {
    absl::StrAppend(&text, " on ", type.device().ToString());
  }
  return text;
}

std::int64_t BytesOf(const Tensor& type) {
  return type.numel() * static_cast<std::int64_t>(DTypeSize(type.dtype()));
}

std::int64_t SpanOf(const Tensor& type) {
  return type.span() * static_cast<std::int64_t>(DTypeSize(type.dtype()));
}

ValueId Function::AddArgument(const Tensor& type, std::string value_name) {
  values.push_back({TypeOf(type), std::move(value_name)});
  arguments.push_back(static_cast<ValueId>(values.size()) - 1);
  return arguments.back();
}

const Node& Function::Add(Node node, const Graph* graph) {
  node.outputs.clear();
  for (Tensor& type : InferTypes(node, *this, graph)) {
    node.outputs.push_back(static_cast<ValueId>(values.size()));
    values.push_back({std::move(type), ""});
  }
  // Any stream may use the constant.
  if (node.kind == NodeKind::kConstant) WaitToRead(node.constant);
  nodes.push_back(std::move(node));
  return nodes.back();
}

ValueId Function::AddOp(const Primitive& primitive, std::vector<ValueId> inputs,
                        SourceLocation at) {
  Node node;
  node.op = {primitive.Clone(), false, at, {}};
  node.inputs = std::move(inputs);
  return Add(std::move(node)).outputs[0];
}

void Function::AddInPlace(const Primitive& primitive,
                          std::vector<ValueId> inputs, ValueId target,
                          SourceLocation at) {
  Node node;
  node.kind = NodeKind::kInPlace;
  node.op = {primitive.Clone(), true, at, {}};
  node.inputs = std::move(inputs);
  node.target = target;
  Add(std::move(node));
}

ValueId Function::AddConstant(const Tensor& constant) {
  Node node;
  node.kind = NodeKind::kConstant;
  node.constant = constant;
  return Add(std::move(node)).outputs[0];
}

ValueId Function::AddWeight(const Graph& graph, int weight) {
  Node node;
  node.kind = NodeKind::kWeight;
  node.index = weight;
  return Add(std::move(node), &graph).outputs[0];
}

std::vector<ValueId> Function::AddCall(const Graph& graph, int callee,
                                       std::vector<ValueId> inputs,
                                       SourceLocation at) {
  Node node;
  node.kind = NodeKind::kCall;
  node.op.requested_at = at;
  node.index = callee;
  node.inputs = std::move(inputs);
  return Add(std::move(node), &graph).outputs;
}

int Graph::AddWeight(const std::string& name, const Tensor& tensor) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].name != name) continue;
    if (SameType(weights[i].type, tensor)) return static_cast<int>(i);
    throw std::invalid_argument(absl::StrFormat(
        "the weight \"%s\" is %s in one place and %s in another", name,
        TypeToString(weights[i].type), TypeToString(tensor)));
  }
  weights.push_back({name, TypeOf(tensor), tensor});
  return static_cast<int>(weights.size()) - 1;
}

// ---- Properties of programs that passes and executors need.

std::vector<ValueId> WrittenBy(const Node& node) {
  std::vector<ValueId> written;
  if (node.kind == NodeKind::kInPlace) written.push_back(node.target);
  if (node.op.primitive == nullptr) return written;
  for (std::size_t i = node.op.primitive->first_written_input();
       i < node.inputs.size(); ++i) {
    written.push_back(node.inputs[i]);
  }
  return written;
}

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
    for (const ValueId value : WrittenBy(node)) {
      pinned_[root[value]] = true;
      if (external(value)) writes_external = true;
    }
    switch (node.kind) {
      case NodeKind::kWeight:
        external_[node.outputs[0]] = true;
        break;
      case NodeKind::kOp:
        if (IsView(*node.op.primitive)) {
          root[node.outputs[0]] = root[node.inputs[0]];
        }
        break;
      case NodeKind::kCall:
        // The callee may write to its arguments and return them.
        pin_external = true;
        for (const ValueId value : node.inputs) pinned_[root[value]] = true;
        for (const ValueId value : node.outputs) pinned_[value] = true;
        break;
      case NodeKind::kConstant:
      case NodeKind::kFused:
      case NodeKind::kInPlace:
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
  if (node.kind == NodeKind::kCall || !WrittenBy(node).empty()) return true;
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
