// Writing and reading programs as JSON.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/files/format_error.h"
#include "common/base/source_location.h"
#include "common/device/failure.h"
#include "common/graph/ir.h"
#include "common/graph/saved/saved.h"
#include "common/ops/primitive/replay.h"
#include "nlohmann/json.hpp"

namespace d2l::ir {
namespace {

using Json = nlohmann::json;

// The bytes of all values; no sum of them overflows.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 44;

class Writer {
 public:
  Writer(const Graph& graph, safetensors::NamedTensors& tensors)
      : graph_(graph), tensors_(tensors) {}

  Json Write() {
    const Function& function = graph_.main();
    // Weights come first: constants then take names that are free.
    for (const Node& node : function.nodes) {
      if (node.kind != NodeKind::kWeight) continue;
      const Weight& weight = graph_.weights[node.index];
      tensors_[weight.name] = weight.tensor;
    }
    Json arguments = Define(function.arguments);
    Json nodes = Json::array();
    for (const Node& node : function.nodes) {
      Json json = {{"inputs", Use(node.inputs)},
                   {"outputs", Define(node.outputs)}};
      if (node.target >= 0) json["target"] = numbers_[node.target];
      AddKind(node, json);
      AddLine("at", node.op.requested_at, json);
      AddLine("by", node.op.requested_by, json);
      nodes.push_back(std::move(json));
    }
    return {{"version", kSavedVersion},
            {"name", function.name},
            {"arguments", std::move(arguments)},
            {"nodes", std::move(nodes)},
            {"returns", Use(function.returns)}};
  }

 private:
  static Json ToJson(const Value& value) {
    const Tensor& type = value.type;
    Json json = {{"dtype", DTypeName(type.dtype())},
                 {"shape", std::vector<std::int64_t>(type.shape().begin(),
                                                     type.shape().end())}};
    if (!value.name.empty()) json["name"] = value.name;
    if (!type.is_contiguous()) {
      json["strides"] = std::vector<std::int64_t>(type.strides().begin(),
                                                  type.strides().end());
    }
    return json;
  }

  Json Define(const std::vector<ValueId>& values) {
    Json list = Json::array();
    for (const ValueId value : values) {
      numbers_.emplace(value, numbers_.size());
      list.push_back(ToJson(graph_.main().values[value]));
    }
    return list;
  }
  Json Use(const std::vector<ValueId>& values) const {
    Json list = Json::array();
    for (const ValueId value : values) list.push_back(numbers_.at(value));
    return list;
  }

  void AddKind(const Node& node, Json& json) {
    switch (node.kind) {
      case NodeKind::kWeight:
        json["weight"] = graph_.weights[node.index].name;
        break;
      case NodeKind::kConstant: {
        std::string name;
        do {
          name = absl::StrCat("constant.", constants_++);
        } while (!tensors_.emplace(name, node.constant).second);
        json["constant"] = name;
        break;
      }
      default:  // there are no calls and no fused regions
        const Primitive& primitive = *node.op.primitive;
        if (primitive.effect() == Effect::kHostData) {
          throw std::invalid_argument(
              absl::StrFormat("[%s] cannot be saved", primitive.name()));
        }
        json["op"] = primitive.name();
        json["attributes"] = Json::object();
        for (const auto& [key, value] : primitive.attributes()) {
          json["attributes"][key] = value;
        }
    }
  }

  static void AddLine(const char* key, SourceLocation at, Json& json) {
    if (at.known()) json[key] = {at.file(), at.line()};
  }

  const Graph& graph_;
  safetensors::NamedTensors& tensors_;
  std::map<ValueId, std::size_t> numbers_;
  int constants_ = 0;
};

class Reader {
 public:
  Reader(const safetensors::NamedTensors& tensors, Device device)
      : tensors_(tensors), device_(device) {}

  Graph Read(const Json& json) {
    function_.name = where_ = json.at("name").get<std::string>();
    for (const Json& argument : json.at("arguments")) {
      Name(argument, function_.AddArgument(Type(argument)));
    }
    int number = 0;
    for (const Json& node : json.at("nodes")) {
      where_ = absl::StrFormat("%s, node %d", function_.name, number);
      if (++number > kMaxNodes) Refuse("more than %d operations", kMaxNodes);
      AddNode(node);
    }
    function_.returns = Uses(json.at("returns"));
    graph_.functions.push_back(std::move(function_));
    return std::move(graph_);
  }

  // The place that is being read: the program, and one of its nodes if in one.
  const std::string& where() const { return where_; }

 private:
  static std::int64_t Integer(const Json& json) {
    if (!json.is_number_integer() ||
        (json.is_number_unsigned() &&
         json.get<std::uint64_t>() >
             std::uint64_t{std::numeric_limits<std::int64_t>::max()})) {
      Refuse("%s stands where an integer is expected", json.type_name());
    }
    return json.get<std::int64_t>();
  }
  static std::vector<std::int64_t> Integers(const Json& json) {
    std::vector<std::int64_t> integers;
    if (!json.is_array()) {
      Refuse("%s stands where a list is expected", json.type_name());
    }
    for (const Json& each : json) integers.push_back(Integer(each));
    return integers;
  }

  // ---- Values.

  ValueId Use(const Json& json) const {
    const std::int64_t value = Integer(json);
    const auto count = static_cast<std::int64_t>(function_.values.size());
    if (value < 0 || value >= count) {
      Refuse("the value %d is used before it is defined", value);
    }
    return static_cast<ValueId>(value);
  }
  std::vector<ValueId> Uses(const Json& json) const {
    std::vector<ValueId> values;
    for (const Json& each : json) values.push_back(Use(each));
    return values;
  }
  void Name(const Json& json, ValueId value) {
    function_.values[value].name = json.value("name", "");
  }

  Tensor Type(const Json& json) const {
    ValueSpec spec;
    const auto name = json.at("dtype").get<std::string>();
    const std::optional<DType> dtype = DTypeNamed(name);
    if (!dtype.has_value()) Refuse("no dtype is called %s", name);
    spec.dtype = *dtype;
    spec.shape = Shape(Integers(json.at("shape")));
    spec.device = device_;
    CheckedNumel("type", spec.shape, DTypeSize(spec.dtype));
    const Tensor type = TypeOf(spec);
    if (!json.contains("strides")) return type;
    const std::vector<std::int64_t> strides = Integers(json["strides"]);
    CheckStrides(spec.shape, strides);
    return Tensor::View(type, 0, spec.shape, Shape(strides));
  }

  // Ensures that no address computed with the strides overflows.
  static void CheckStrides(const Shape& shape,
                           const std::vector<std::int64_t>& strides) {
    if (strides.size() != shape.size())
      Refuse("a stride for each size expected");
    constexpr std::int64_t kMost =
        std::numeric_limits<std::int64_t>::max() / 64;
    std::int64_t reach = 0;
    for (int i = 0; i < shape.rank(); ++i) {
      std::int64_t steps = 0;
      if (strides[i] < 0 || strides[i] > kMost ||
          __builtin_mul_overflow(std::max<std::int64_t>(shape[i], 1),
                                 strides[i], &steps) ||
          __builtin_add_overflow(reach, steps, &reach) || reach > kMost) {
        Refuse("strides that reach too far");
      }
    }
  }

  const Tensor& TensorNamed(const std::string& name, const Tensor& type) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) Refuse("the file has no tensor \"%s\"", name);
    const Tensor& values = found->second;
    if (values.shape() != type.shape() || values.dtype() != type.dtype()) {
      Refuse("the tensor \"%s\" is %s; the program wants %s", name,
             TypeToString(values), TypeToString(type));
    }
    return values;
  }

  // ---- Nodes.

  void AddNode(const Json& json) {
    const Json& outputs = json.at("outputs");
    Node node;
    node.inputs = Uses(json.at("inputs"));
    if (json.contains("weight")) {
      node.kind = NodeKind::kWeight;
      node.index = WeightOf(json["weight"], Type(outputs.at(0)));
    } else if (json.contains("constant")) {
      node.kind = NodeKind::kConstant;
      node.constant = TensorNamed(json["constant"], Type(outputs.at(0)));
    } else {
      Operation(json, node);
    }
    node.op.requested_at = Line("at", json);
    node.op.requested_by = Line("by", json);
    Add(std::move(node), outputs);
  }

  void Add(Node node, const Json& claims) {
    const bool is_view =
        node.kind == NodeKind::kOp && IsView(*node.op.primitive);
    const std::vector<ValueId> outputs =
        function_.Add(std::move(node), &graph_).outputs;
    if (outputs.size() != claims.size()) {
      Refuse("it has %d results; the file tells of %d", outputs.size(),
             claims.size());
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& type = function_.type(outputs[i]);
      const Tensor claim = Type(claims.at(i));
      if (claim.shape() != type.shape() || claim.dtype() != type.dtype()) {
        Refuse("the value %d is %s, not %s", outputs[i], TypeToString(type),
               TypeToString(claim));
      }
      Name(claims.at(i), outputs[i]);
      if (!is_view) bytes_ += static_cast<double>(BytesOf(type));
    }
    if (bytes_ > static_cast<double>(kMaxBytes)) {
      Refuse("values of more than %d bytes", kMaxBytes);
    }
  }

  // As Graph::AddWeight, which searches all weights; this one has an index.
  int WeightOf(const std::string& name, const Tensor& type) {
    const auto [found, is_new] =
        weights_.emplace(name, static_cast<int>(graph_.weights.size()));
    if (!is_new) {
      if (!SameType(graph_.weights[found->second].type, type)) {
        graph_.AddWeight(name, type);  // throws
      }
      return found->second;
    }
    const Tensor values = WithStrides(TensorNamed(name, type), type);
    graph_.weights.push_back({name, TypeOf(type), values});
    return found->second;
  }

  void Operation(const Json& json, Node& node) const {
    std::vector<Attribute> attributes;
    for (const auto& [key, value] : json.at("attributes").items()) {
      attributes.emplace_back(
          key, key == "device" ? device_.ToString() : value.get<std::string>());
    }
    absl::StatusOr<std::unique_ptr<Primitive>> primitive =
        MakePrimitive(json.at("op").get<std::string>(), attributes);
    if (!primitive.ok()) Refuse("%s", primitive.status().message());
    node.op.primitive = *std::move(primitive);
    if (!json.contains("target")) return;
    node.kind = NodeKind::kInPlace;
    node.op.in_place = true;
    node.target = Use(json["target"]);
  }

  static SourceLocation Line(const char* key, const Json& json) {
    if (!json.contains(key)) return {};
    const std::int64_t line = Integer(json[key].at(1));
    if (line != static_cast<int>(line)) Refuse("there is no line %d", line);
    return {Intern(json[key].at(0).get<std::string>()), static_cast<int>(line)};
  }

  const safetensors::NamedTensors& tensors_;
  const Device device_;
  std::string where_ = "the program";
  double bytes_ = 0;  // of all values; a sum of integers might overflow
  std::map<std::string, int> weights_;  // index by name
  Graph graph_;
  Function function_;
};

}  // namespace

std::string ProgramToJson(const Graph& graph,
                          safetensors::NamedTensors& tensors) {
  // Names of files may not be UTF-8.
  return Writer(graph, tensors)
      .Write()
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Graph> ProgramFromJson(std::string_view json,
                                      const safetensors::NamedTensors& tensors,
                                      Device device) {
  Reader reader(tensors, device);
  const auto error = [&](std::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: %s", reader.where(), what));
  };
  try {
    const Json program = Json::parse(json);
    const Json& version = program.at("version");
    if (version != kSavedVersion) {
      return absl::UnimplementedError(
          absl::StrFormat("the program is of version %s; this library reads %d",
                          version.dump(), kSavedVersion));
    }
    Graph graph = reader.Read(program);
    try {
      Verify(graph);
    } catch (const std::invalid_argument& wrong) {
      return absl::InvalidArgumentError(wrong.what());  // names the function
    }
    return graph;
  } catch (const FormatError& wrong) {
    return error(wrong.what);
  } catch (const Json::exception& wrong) {
    // Removes nlohmann's prefix, "[json.exception.out_of_range.403] ".
    const std::string_view what = wrong.what();
    return error(what.substr(what.find("] ") + 2));
  } catch (const OutOfMemoryError& wrong) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s: %s", reader.where(), wrong.what()));
  } catch (const std::logic_error& wrong) {
    return error(wrong.what());  // an operation refused it
  }
}

}  // namespace d2l::ir
