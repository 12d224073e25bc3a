// Validity of programs: inference of types, and Verify.

#include <algorithm>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/graph/ir.h"

namespace d2l::ir {
namespace {

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

// A name that text can hold: a letter, then letters, digits, "_" and ".".
bool IsName(std::string_view name) {
  return !name.empty() && !absl::ascii_isdigit(name[0]) && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '.';
         });
}

// A value must be defined once, and before its uses.
void CheckOrder(const Function& function) {
  const int count = static_cast<int>(function.values.size());
  std::vector<bool> defined(count, false);
  const auto refuse = [&](ValueId value, std::string_view what) {
    throw std::invalid_argument(absl::StrFormat("function %s: value %d %s",
                                                function.name, value, what));
  };
  const auto define = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      if (value < 0 || value >= count) refuse(value, "does not exist");
      if (defined[value]) refuse(value, "is defined twice");
      defined[value] = true;
    }
  };
  const auto use = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      if (value < 0 || value >= count) refuse(value, "does not exist");
      if (!defined[value]) refuse(value, "is used before it is defined");
    }
  };
  define(function.arguments);
  for (const Node& node : function.nodes) {
    use(node.inputs);
    if (node.kind == NodeKind::kInPlace) use({node.target});
    define(node.outputs);
  }
  use(function.returns);
  std::set<std::string> names;
  for (int value = 0; value < count; ++value) {
    const std::string& name = function.values[value].name;
    if (!defined[value] || name.empty()) continue;
    if (!IsName(name)) refuse(value, "has a name that text cannot hold");
    if (!names.insert(name).second) {
      refuse(value, absl::StrCat("has the name of another, ", name));
    }
  }
}

// The node's types in the function must be the inferred ones.
void CheckTypes(const Node& node, const Function& function,
                const Graph* graph) {
  const std::vector<Tensor> types = InferTypes(node, function, graph);
  if (types.size() != node.outputs.size()) {
    throw std::invalid_argument(absl::StrFormat(
        "%d outputs wanted; got %d", types.size(), node.outputs.size()));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const Tensor& claimed = function.type(node.outputs[i]);
    if (!SameType(types[i], claimed) || types[i].offset() != claimed.offset()) {
      throw std::invalid_argument(
          absl::StrFormat("%s is claimed; inference says %s",
                          TypeToString(claimed), TypeToString(types[i])));
    }
  }
}

void VerifyFunction(const Function& function, const Graph* graph) {
  CheckOrder(function);
  for (const Node& node : function.nodes) {
    try {
      if (node.kind == NodeKind::kCall &&
          (node.index < 0 || graph == nullptr ||
           node.index >= &function - graph->functions.data())) {
        throw std::invalid_argument(
            "[call] a function calls only those before it");
      }
      CheckTypes(node, function, graph);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(
          absl::StrFormat("function %s: %s; requested at %s", function.name,
                          error.what(), node.op.requested_at.ToString()));
    }
    if (node.kind == NodeKind::kFused) VerifyFunction(*node.body, nullptr);
  }
}

}  // namespace

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
    CheckTarget(node, primitive.Infer(inputs), function);
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
  return {TypeOf(primitive.Infer(inputs))};
}

void Verify(const Graph& graph) {
  if (graph.functions.empty()) {
    throw std::invalid_argument("a program has at least one function");
  }
  std::set<std::string> names;
  std::vector<int> depth;  // of calls
  for (const Function& function : graph.functions) {
    if (!IsName(function.name) || !names.insert(function.name).second) {
      throw std::invalid_argument(
          absl::StrCat("a function is called ", function.name,
                       ", which is empty or another node's name"));
    }
    VerifyFunction(function, &graph);
    depth.push_back(1);
    for (const Node& node : function.nodes) {
      if (node.kind != NodeKind::kCall) continue;
      depth.back() = std::max(depth.back(), 1 + depth[node.index]);
    }
    if (depth.back() > kMaxCallDepth) {
      throw std::invalid_argument(
          absl::StrFormat("function %s: calls are nested more than %d deep",
                          function.name, kMaxCallDepth));
    }
  }
}

}  // namespace d2l::ir
