#include "common/graph/ir.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/kernels/op_tables.h"
#include "common/ops/copy_primitives.h"
#include "common/ops/elementwise_primitives.h"
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

std::vector<Tensor> TypesOf(const std::vector<ValueId>& values,
                            const Function& function) {
  std::vector<Tensor> types;
  types.reserve(values.size());
  for (const ValueId value : values)
    types.push_back(TypeOf(function.type(value)));
  return types;
}

void CheckTarget(const Node& node, const ValueSpec& spec,
                 const Function& function) {
  const char* const name = node.op.primitive->name();
  const Tensor& target = function.type(node.target);
  if (spec.shape != target.shape() || spec.dtype != target.dtype() ||
      spec.device != target.device()) {
    throw std::invalid_argument(absl::StrFormat(
        "[%s_] the result, %s, does not fit in place into %s", name,
        TypeToString(TypeOf(spec)), TypeToString(target)));
  }
  for (int i = 0; i < target.dim(); ++i) {
    if (target.strides()[i] == 0 && target.size(i) > 1) {
      throw std::invalid_argument(absl::StrFormat(
          "[%s_] the target, %s, repeats its elements in dimension %d", name,
          TypeToString(target), i));
    }
  }
}

void CheckCall(const Node& node, const Function& function,
               const Function& callee) {
  if (node.inputs.size() != callee.arguments.size()) {
    throw std::invalid_argument(
        absl::StrFormat("[call] %s takes %d arguments; got %d", callee.name,
                        callee.arguments.size(), node.inputs.size()));
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& given = function.type(node.inputs[i]);
    const Tensor& wanted = callee.type(callee.arguments[i]);
    if (!SameType(given, wanted)) {
      throw std::invalid_argument(absl::StrFormat(
          "[call] argument %d of %s is %s; got %s", i, callee.name,
          TypeToString(wanted), TypeToString(given)));
    }
  }
}

constexpr int kMaxCallDepth = 100;

// As text can hold it: a letter, then letters, digits, "_" and ".".
bool IsName(std::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(name[0]) && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '.';
         });
}

// A value is defined once, and used after that.
absl::Status CheckOrder(const Function& function) {
  const int count = static_cast<int>(function.values.size());
  std::vector<bool> defined(count, false);
  const auto error = [&](std::string_view what, ValueId value) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "function %s: value %d %s", function.name, value, what));
  };
  const auto define = [&](const std::vector<ValueId>& values) -> absl::Status {
    for (const ValueId value : values) {
      if (value < 0 || value >= count) return error("does not exist", value);
      if (defined[value]) return error("is defined twice", value);
      defined[value] = true;
    }
    return absl::OkStatus();
  };
  const auto use = [&](const std::vector<ValueId>& values) -> absl::Status {
    for (const ValueId value : values) {
      if (value < 0 || value >= count) return error("does not exist", value);
      if (!defined[value]) return error("is used before it is defined", value);
    }
    return absl::OkStatus();
  };
  if (absl::Status s = define(function.arguments); !s.ok()) return s;
  for (const Node& node : function.nodes) {
    if (absl::Status s = use(node.inputs); !s.ok()) return s;
    if (node.kind == NodeKind::kInPlace) {
      if (absl::Status s = use({node.target}); !s.ok()) return s;
    }
    if (absl::Status s = define(node.outputs); !s.ok()) return s;
  }
  if (absl::Status s = use(function.returns); !s.ok()) return s;
  std::set<std::string> names;
  for (int value = 0; value < count; ++value) {
    const std::string& name = function.values[value].name;
    if (!defined[value] || name.empty()) continue;
    if (!IsName(name)) return error("has a name that text cannot hold", value);
    if (!names.insert(name).second) {
      return error(absl::StrCat("has the name of another, ", name), value);
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyFused(const Function& body) {
  std::vector<bool> returned(body.values.size(), false);
  for (const ValueId value : body.arguments) returned[value] = true;
  for (const ValueId value : body.returns) {
    if (returned[value]) {
      return absl::InvalidArgumentError(
          "a fused region returns each of its results once, and no argument");
    }
    returned[value] = true;
  }
  if (body.nodes.empty()) {
    return absl::InvalidArgumentError("a fused region holds no operation");
  }
  for (const Node& node : body.nodes) {
    if (!IsFusable(node, body) ||
        body.type(node.outputs[0]).shape() !=
            body.type(body.nodes[0].outputs[0]).shape()) {
      return absl::InvalidArgumentError(
          "a fused region holds element-wise operations with results of one "
          "shape, which cannot fail, on contiguous values, rows and numbers");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyFunction(const Function& function, const Graph* graph) {
  if (absl::Status s = CheckOrder(function); !s.ok()) return s;
  for (const Node& node : function.nodes) {
    try {
      if (node.kind == NodeKind::kCall &&
          (node.index < 0 || graph == nullptr ||
           node.index >= &function - graph->functions.data())) {
        throw std::invalid_argument(
            "[call] a function calls only those before it");
      }
      const std::vector<Tensor> types = InferTypes(node, function, graph);
      if (types.size() != node.outputs.size()) {
        throw std::invalid_argument(absl::StrFormat(
            "%d outputs wanted; got %d", types.size(), node.outputs.size()));
      }
      for (std::size_t i = 0; i < types.size(); ++i) {
        const Tensor& claimed = function.type(node.outputs[i]);
        if (!SameType(types[i], claimed) ||
            types[i].offset() != claimed.offset()) {
          throw std::invalid_argument(
              absl::StrFormat("%s is claimed; inference says %s",
                              TypeToString(claimed), TypeToString(types[i])));
        }
      }
    } catch (const std::invalid_argument& error) {
      return absl::InvalidArgumentError(
          absl::StrFormat("function %s: %s; requested at %s", function.name,
                          error.what(), node.op.requested_at.ToString()));
    }
    if (node.kind == NodeKind::kFused) {
      if (absl::Status s = VerifyFunction(*node.body, nullptr); !s.ok()) {
        return s;
      }
      if (absl::Status s = VerifyFused(*node.body); !s.ok()) return s;
    }
  }
  return absl::OkStatus();
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

std::vector<Tensor> InferTypes(const Node& node, const Function& function,
                               const Graph* graph) {
  for (const ValueId value : node.inputs) {
    if (value < 0 || value >= static_cast<int>(function.values.size())) {
      throw std::invalid_argument(absl::StrCat("no value ", value));
    }
  }
  switch (node.kind) {
    case NodeKind::kWeight:
      if (graph == nullptr || node.index < 0 ||
          node.index >= static_cast<int>(graph->weights.size())) {
        throw std::invalid_argument(absl::StrCat("no weight ", node.index));
      }
      return {graph->weights[node.index].type};
    case NodeKind::kConstant:
      if (!node.constant.defined() || !node.constant.is_contiguous()) {
        throw std::invalid_argument("a constant is a contiguous tensor");
      }
      return {TypeOf(node.constant)};
    case NodeKind::kCall: {
      if (graph == nullptr || node.index < 0 ||
          node.index >= static_cast<int>(graph->functions.size())) {
        throw std::invalid_argument(absl::StrCat("no function ", node.index));
      }
      const Function& callee = graph->functions[node.index];
      CheckCall(node, function, callee);
      return TypesOf(callee.returns, callee);
    }
    case NodeKind::kFused:
      CheckCall(node, function, *node.body);
      return TypesOf(node.body->returns, *node.body);
    case NodeKind::kOp:
    case NodeKind::kInPlace:
      break;
  }
  std::vector<const Tensor*> inputs;
  inputs.reserve(node.inputs.size());
  const Primitive& primitive = *node.op.primitive;
  for (const ValueId value : node.inputs) {
    inputs.push_back(&function.type(value));
    if (inputs.back()->device() != inputs[0]->device()) {
      throw std::invalid_argument(
          absl::StrFormat("[%s] operands on two devices", primitive.name()));
    }
  }
  if (node.kind == NodeKind::kInPlace) {
    if (node.target < 0 ||
        node.target >= static_cast<int>(function.values.size())) {
      throw std::invalid_argument(absl::StrCat("no value ", node.target));
    }
    CheckTarget(node, primitive.Infer(inputs, 0), function);
    return {};
  }
  if (const auto* view = dynamic_cast<const ViewPrimitive*>(&primitive)) {
    CheckInputCount(primitive.name(), inputs, 1);
    const ViewPrimitive::Spec spec = view->View(*inputs[0]);
    return {Tensor::View(*inputs[0], spec.offset, spec.shape, spec.strides)};
  }
  if (primitive.effect() == Effect::kInPlace) {
    throw std::invalid_argument(absl::StrFormat(
        "[%s] writes in place and has no target", primitive.name()));
  }
  std::vector<Tensor> types;
  for (int i = 0; i < primitive.num_outputs(); ++i) {
    types.push_back(TypeOf(primitive.Infer(inputs, i)));
  }
  return types;
}

absl::Status Verify(const Graph& graph) {
  if (graph.functions.empty()) {
    return absl::InvalidArgumentError("a program has at least one function");
  }
  std::set<std::string> names;
  std::vector<int> depth;  // of calls
  for (const Function& function : graph.functions) {
    if (!IsName(function.name) || !names.insert(function.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("a function is called ", function.name,
                       ", which is no name or that of another"));
    }
    if (absl::Status s = VerifyFunction(function, &graph); !s.ok()) {
      return s;
    }
    depth.push_back(1);
    for (const Node& node : function.nodes) {
      if (node.kind != NodeKind::kCall) continue;
      depth.back() = std::max(depth.back(), 1 + depth[node.index]);
    }
    if (depth.back() > kMaxCallDepth) {
      return absl::InvalidArgumentError(
          absl::StrFormat("function %s: calls are nested more than %d deep",
                          function.name, kMaxCallDepth));
    }
  }
  return absl::OkStatus();
}

void CheckValid(const Graph& graph) {
  const absl::Status status = Verify(graph);
  if (!status.ok()) throw std::invalid_argument(std::string(status.message()));
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
  if (node.op.primitive == nullptr) return false;
  const std::string_view name = node.op.primitive->name();
  if (name == "gather" || name == "index_select") return true;
  const auto op =
      kernels::OpNamed<kernels::BinaryOp>(node.op.primitive->name());
  return (op == kernels::BinaryOp::kFloorDivide ||
          op == kernels::BinaryOp::kPow) &&
         !IsFloatingPoint(function.type(node.inputs[0]).dtype());
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
          ? binary->op() == kernels::BinaryOp::kPow
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
