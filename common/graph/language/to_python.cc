// ToPython and Run: programs, and what they print, as Python writes them.

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/graph/interpreter.h"
#include "common/graph/language/language.h"
#include "common/graph/language/syntax.h"
#include "common/kernels/op_tables.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/read.h"
#include "common/tensor/dtype.h"

namespace d2l::language {
namespace {

// repr(x): the shortest digits that read back as x, with an exponent below
// 1e-4 and from 1e16.
std::string Repr(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  char digits[32];  // at most -1.2345678901234567e-308
  const auto to_chars = [&](std::chars_format format) {
    const auto [end, unused] =
        std::to_chars(std::begin(digits), std::end(digits), x, format);
    return std::string(digits, end);
  };
  std::string text = to_chars(std::chars_format::scientific);
  const int exponent = std::atoi(text.c_str() + text.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return text;
  text = to_chars(std::chars_format::fixed);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

std::string Repr(const Tensor& x) {
  return x.dtype() == DType::kInt64 ? absl::StrCat(Item<std::int64_t>(x))
                                    : Repr(Item(x));
}

// Writes one function.
class Writer {
 public:
  // names: what no variable may be called. They are left as they were.
  Writer(const Program& program, const ir::Function& function, Names& names)
      : program_(program),
        function_(function),
        names_(names),
        is_main_(&function == &program.graph.main()),
        expressions_(function.values.size()),
        uses_(function.values.size()) {}

  std::string Write() {
    for (const ir::ValueId value : function_.arguments) {
      expressions_[value].text = NewName(value);
    }
    if (!is_main_) {
      text_ = absl::StrFormat("def %s(%s):\n", function_.name,
                              Join(function_.arguments));
    }
    CountUses();
    for (const ir::Node& node : function_.nodes) Write(node);
    for (const std::string& name : taken_) names_.erase(name);
    if (!is_main_) {
      Line(absl::StrCat("return ", Join(function_.returns)));
      return std::move(text_);
    }
    auto value = function_.returns.begin();
    for (const int count : program_.prints) {
      Line(absl::StrCat("print(", Join({value, value + count}), ")"));
      value += count;
    }
    return std::move(text_);
  }

 private:
  struct Expression {
    std::string text;
    int level = kAtomLevel;
  };

  // The language converts without a word: int + float.
  static bool IsConversion(const ir::Node& node) {
    return dynamic_cast<const CopyPrimitive*>(node.op.primitive.get()) !=
           nullptr;
  }

  void CountUses() {
    for (const ir::ValueId value : function_.returns) ++uses_[value];
    for (auto node = function_.nodes.rbegin(); node != function_.nodes.rend();
         ++node) {
      for (const ir::ValueId value : node->inputs) {
        uses_[value] += IsConversion(*node) ? uses_[node->outputs[0]] : 1;
      }
    }
  }

  void Line(const std::string& line) {
    absl::StrAppend(&text_, is_main_ ? "" : "    ", line, "\n");
  }
  std::string NewName(ir::ValueId value) {
    const std::string& hint = function_.values[value].name;
    taken_.push_back(Unique(hint.empty() ? "v" : hint, names_));
    return taken_.back();
  }
  std::string Join(const std::vector<ir::ValueId>& values) const {
    return absl::StrJoin(values, ", ",
                         [this](std::string* out, ir::ValueId value) {
                           out->append(expressions_[value].text);
                         });
  }
  // In parentheses unless it holds together more tightly than `level`.
  std::string Operand(ir::ValueId value, int level) const {
    const Expression& e = expressions_[value];
    return e.level > level ? e.text : absl::StrCat("(", e.text, ")");
  }

  void Write(const ir::Node& node) {
    if (node.kind == ir::NodeKind::kOp && IsConversion(node)) {
      expressions_[node.outputs[0]] = expressions_[node.inputs[0]];
      return;
    }
    Expression e = ExpressionOf(node);
    const ir::ValueId value = node.outputs[0];
    constexpr std::size_t kMaxSize = 60;
    if (node.kind != ir::NodeKind::kConstant &&
        (uses_[value] != 1 || e.text.size() > kMaxSize)) {
      const std::string name = NewName(value);
      Line(absl::StrCat(name, " = ", e.text));
      e = {name};
    }
    expressions_[value] = std::move(e);
  }

  Expression ExpressionOf(const ir::Node& node) const {
    if (node.kind == ir::NodeKind::kConstant) return Literal(node.constant);
    if (node.kind == ir::NodeKind::kCall) {
      return {absl::StrCat(program_.graph.functions[node.index].name, "(",
                           Join(node.inputs), ")")};
    }
    const Primitive* const primitive =
        node.kind == ir::NodeKind::kOp ? node.op.primitive.get() : nullptr;
    const auto* const unary = dynamic_cast<const UnaryPrimitive*>(primitive);
    if (unary != nullptr && unary->op == kernels::UnaryOp::kNegative) {
      return {"-" + Operand(node.inputs[0], kProductLevel), kUnaryLevel};
    }
    const auto* const binary = dynamic_cast<const BinaryPrimitive*>(primitive);
    for (const auto& o : kOperators) {
      if (binary == nullptr || o.op != binary->op ||
          binary->which != BinaryPrimitive::Which::kNone) {
        continue;
      }
      return {absl::StrFormat("%s %c %s", Operand(node.inputs[0], o.level),
                              o.sign, Operand(node.inputs[1], o.level)),
              o.level};
    }
    throw std::invalid_argument(absl::StrFormat(
        "the language has no %s", primitive == nullptr
                                      ? "weight, write in place or fused region"
                                      : primitive->name()));
  }

  // Infinity and NaN have no literals, but values.
  static Expression Literal(const Tensor& x) {
    std::string text = Repr(x);
    if (text == "nan") return {"1e999 - 1e999", kSumLevel};
    if (absl::EndsWith(text, "inf")) text.replace(text.size() - 3, 3, "1e999");
    return {text, text[0] == '-' ? kUnaryLevel : kAtomLevel};
  }

  const Program& program_;
  const ir::Function& function_;
  Names& names_;
  std::vector<std::string> taken_;  // of names_, by variables
  const bool is_main_;
  std::string text_;
  // By value.
  std::vector<Expression> expressions_;
  std::vector<int> uses_;
};

}  // namespace

std::string Run(const Program& program) {
  const std::vector<Tensor> results = ir::Run(program.graph, {});
  auto result = results.begin();
  std::string text;
  for (const int count : program.prints) {
    absl::StrAppend(&text,
                    absl::StrJoin(result, result + count, " ",
                                  [](std::string* out, const Tensor& x) {
                                    out->append(Repr(x));
                                  }),
                    "\n");
    result += count;
  }
  return text;
}

std::string ToPython(const Program& program) {
  Names names;
  for (const ir::Function& function : program.graph.functions) {
    names.emplace(function.name, 1);
  }
  return absl::StrJoin(program.graph.functions, "\n",
                       [&](std::string* out, const ir::Function& function) {
                         out->append(Writer(program, function, names).Write());
                       });
}

int CountCalls(const ir::Graph& graph) {
  std::vector<int> calls;
  for (const ir::Function& function : graph.functions) {
    calls.push_back(0);
    for (const ir::Node& node : function.nodes) {
      if (node.kind == ir::NodeKind::kCall) {
        calls.back() += 1 + calls[node.index];
      }
    }
  }
  return calls.back();
}

}  // namespace d2l::language
