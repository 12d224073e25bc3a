#include "common/graph/ir.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/ops/read.h"

namespace d2l::ir {
namespace {

// A contiguous type of that shape may have other strides along dimensions of
// size 1.
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
  if (type.numel() == 0) return 0;
  std::int64_t last = 0;
  for (int i = 0; i < type.dim(); ++i) {
    last += (type.size(i) - 1) * type.strides()[i];
  }
  return (last + 1) * static_cast<std::int64_t>(DTypeSize(type.dtype()));
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
  // Whatever stream uses it.
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

int Graph::AddWeight(const std::string& name, const Tensor& type) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].name != name) continue;
    if (SameType(weights[i].type, type)) return static_cast<int>(i);
    throw std::invalid_argument(absl::StrFormat(
        "the weight \"%s\" is %s in one place and %s in another", name,
        TypeToString(weights[i].type), TypeToString(type)));
  }
  weights.push_back({name, TypeOf(type), {}});
  return static_cast<int>(weights.size()) - 1;
}

void Graph::Bind(std::string_view name, const Tensor& tensor) {
  for (Weight& weight : weights) {
    if (weight.name != name) continue;
    if (!tensor.defined() || !SameType(weight.type, tensor)) {
      throw std::invalid_argument(absl::StrFormat(
          "the weight \"%s\" is %s; got %s", name, TypeToString(weight.type),
          tensor.defined() ? TypeToString(tensor) : "an undefined tensor"));
    }
    weight.tensor = tensor;
    return;
  }
  throw std::invalid_argument(
      absl::StrFormat("the program has no weight \"%s\"", name));
}

}  // namespace d2l::ir
