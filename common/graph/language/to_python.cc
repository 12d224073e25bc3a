// ToPython and Run: a program's text, and what it prints.

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/graph/ir.h"
#include "common/graph/language/language.h"
#include "common/kernels/op_tables.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/read.h"

namespace d2l::language {
namespace {

// Operators of a higher level hold more tightly.
constexpr int kSumLevel = 0;
constexpr int kProductLevel = 1;
constexpr int kUnaryLevel = 2;
constexpr int kAtomLevel = 3;
constexpr struct {
  char sign;
  int level;
  kernels::BinaryOp op;
} kOperators[] = {{'+', kSumLevel, kernels::BinaryOp::kAdd},
                  {'-', kSumLevel, kernels::BinaryOp::kSubtract},
                  {'*', kProductLevel, kernels::BinaryOp::kMultiply}};

// Names that are taken, and the last number at the end of each.
using Names = std::map<std::string, int>;

// The name, or the name with a number if it is taken. It is taken then.
std::string Unique(const std::string& name, Names& names) {
  const auto [taken, is_new] = names.emplace(name, 1);
  if (is_new) return name;
  for (;;) {
    std::string numbered = absl::StrCat(name, "_", ++taken->second);
    if (names.emplace(numbered, 1).second) return numbered;
  }
}

std::string Number(const Tensor& x) {
  return absl::StrCat(Item<std::int64_t>(x));
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
    for (const ir::ValueId value : function_.returns) ++uses_[value];
    for (const ir::Node& node : function_.nodes) {
      for (const ir::ValueId value : node.inputs) ++uses_[value];
    }
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
    if (node.kind == ir::NodeKind::kConstant) {
      const std::string text = Number(node.constant);
      return {text, text[0] == '-' ? kUnaryLevel : kAtomLevel};
    }
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
                                    out->append(Number(x));
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
