#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/graph/ir.h"
#include "common/ops/read.h"

namespace d2l::ir {
namespace {

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", absl::CHexEscape(text), "\"");
}

// Text of letters, digits and "_.+-:" is written without quotes.
bool IsPlain(absl::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) ||
                  absl::string_view("_.+-:").find(static_cast<char>(c)) !=
                      absl::string_view::npos;
         });
}

template <typename T>
std::string NumberToString(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) {
      using Bits =
          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
      Bits bits;
      std::memcpy(&bits, &value, sizeof(bits));
      return absl::StrFormat("0x%x", bits);
    }
  }
  char text[32];
  const auto end = std::to_chars(std::begin(text), std::end(text), value).ptr;
  return std::string(text, end);
}

class Printer {
 public:
  Printer(const Graph& graph, bool with_lines)
      : graph_(graph), with_lines_(with_lines) {}

  std::string Print() {
    for (const Function& function : graph_.functions) {
      Name(function);
      absl::StrAppend(&text_, "def ", function.name, "(");
      const char* comma = "";
      for (const ValueId value : function.arguments) {
        absl::StrAppend(&text_, comma, names_[value], ": ",
                        TypeToString(function.type(value)));
        comma = ", ";
      }
      absl::StrAppend(&text_, ") {\n");
      Body(function, "  ");
      absl::StrAppend(&text_, "}\n");
    }
    return std::move(text_);
  }

 private:
  // In the order of definition, so that parsing gives the same numbers.
  void Name(const Function& function) {
    names_.assign(function.values.size(), "");
    int next = 0;
    const auto name = [&](ValueId value) {
      const std::string& value_name = function.values[value].name;
      names_[value] = value_name.empty() ? absl::StrCat("%", next++)
                                         : absl::StrCat("%", value_name);
    };
    std::for_each(function.arguments.begin(), function.arguments.end(), name);
    for (const Node& node : function.nodes) {
      std::for_each(node.outputs.begin(), node.outputs.end(), name);
    }
  }

  std::string List(const std::vector<ValueId>& values) const {
    return absl::StrJoin(values, ", ", [this](std::string* out, ValueId value) {
      out->append(names_[value]);
    });
  }

  void Body(const Function& function, const std::string& indent) {
    for (const Node& node : function.nodes) {
      absl::StrAppend(&text_, indent);
      if (node.kind == NodeKind::kInPlace) {
        absl::StrAppend(&text_, "write ", names_[node.target], " = ");
      } else if (!node.outputs.empty()) {
        absl::StrAppend(&text_, List(node.outputs), " = ");
      }
      switch (node.kind) {
        case NodeKind::kWeight:
          absl::StrAppend(&text_, "weight ",
                          Quoted(graph_.weights[node.index].name));
          break;
        case NodeKind::kConstant:
          absl::StrAppend(&text_, "constant [", Numbers(node.constant), "]");
          break;
        case NodeKind::kCall:
          absl::StrAppend(&text_, "call ", graph_.functions[node.index].name,
                          "(", List(node.inputs), ")");
          break;
        case NodeKind::kFused:
          Fused(node, indent);
          continue;
        case NodeKind::kOp:
        case NodeKind::kInPlace:
          if (node.op.primitive->effect() == Effect::kHostData) {
            throw std::invalid_argument(
                absl::StrFormat("[%s] has no text", node.op.primitive->name()));
          }
          absl::StrAppend(&text_, node.op.primitive->name(), "(",
                          List(node.inputs), ")", Attributes(node));
      }
      const char* separator = " : ";
      for (const ValueId value : node.outputs) {
        absl::StrAppend(&text_, separator, Type(node, function.type(value)));
        separator = ", ";
      }
      Line(node);
    }
    absl::StrAppend(&text_, indent, "return",
                    function.returns.empty() ? "" : " ", List(function.returns),
                    "\n");
  }

  void Fused(const Node& node, const std::string& indent) {
    absl::StrAppend(&text_, "fused(", List(node.inputs), ") {");
    Line(node);
    // The region has names of its own.
    std::vector<std::string> outer = std::move(names_);
    Name(*node.body);
    absl::StrAppend(&text_, indent, "  (", List(node.body->arguments), ")\n");
    Body(*node.body, indent + "  ");
    names_ = std::move(outer);
    absl::StrAppend(&text_, indent, "}\n");
  }

  // A view's strides are inferred.
  static std::string Type(const Node& node, const Tensor& type) {
    return TypeToString(
        node.kind == NodeKind::kOp
            ? TypeOf(ValueSpec{type.shape(), type.dtype(), type.device()})
            : type);
  }

  static std::string Attributes(const Node& node) {
    const std::vector<Attribute> attributes = node.op.primitive->attributes();
    if (attributes.empty()) return "";
    return absl::StrCat(
        " {",
        absl::StrJoin(attributes, ", ",
                      [](std::string* out, const Attribute& attribute) {
                        const std::string& value = attribute.second;
                        absl::StrAppend(out, attribute.first, "=",
                                        IsPlain(value) ? value : Quoted(value));
                      }),
        "}");
  }

  static std::string Numbers(const Tensor& constant) {
    return VisitDType(constant.dtype(), [&](auto zero) {
      return absl::StrJoin(ToVector<decltype(zero)>(constant), ", ",
                           [](std::string* out, auto value) {
                             out->append(NumberToString(value));
                           });
    });
  }

  void Line(const Node& node) {
    if (with_lines_) {
      Location(" @", node.op.requested_at);
      Location(" by ", node.op.requested_by);
    }
    absl::StrAppend(&text_, "\n");
  }
  void Location(const char* word, SourceLocation at) {
    if (!at.known()) return;
    absl::StrAppend(&text_, word, Quoted(at.file()), ":", at.line());
  }

  const Graph& graph_;
  const bool with_lines_;
  std::vector<std::string> names_;  // by value, of the function at hand
  std::string text_;
};

}  // namespace

std::string ToText(const Graph& graph, bool with_lines) {
  Verify(graph);
  return Printer(graph, with_lines).Print();
}

}  // namespace d2l::ir
