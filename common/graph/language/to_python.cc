// ToPython and Run: programs, and what they print, as Python writes them.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/graph/language/language.h"
#include "common/graph/language/parser.h"
#include "common/graph/language/tokens.h"
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

struct Expression {
  std::string text;
  int level = kAtomLevel;
  int depth = 0;
};

// Infinity and NaN have no literals, but values.
Expression Literal(const Tensor& x) {
  std::string text = Repr(x);
  const std::size_t infinity = text.find("inf");
  if (infinity != std::string::npos) text.replace(infinity, 3, "1e999");
  if (text == "nan") return {"1e999 - 1e999", kSumLevel, 1};
  return {text, text[0] == '-' ? kUnaryLevel : kAtomLevel, 0};
}

// Deeper expressions are spread over several lines.
constexpr int kMaxDepth = 16;

// Writes one function.
class Writer {
 public:
  // names: what no variable may be called. They are left as they were.
  Writer(const ir::Graph& graph, const Program& program, Names& names)
      : graph_(graph), program_(program), names_(names) {}

  std::string Write(const ir::Function& function) {
    const bool is_main = &function == &graph_.main();
    indent_ = is_main ? "" : "    ";
    std::vector<int> values(function.values.size(), -1);
    for (const ir::ValueId value : function.arguments) {
      values[value] = Add(function.values[value]);
      expressions_[values[value]] = {NewName(values[value])};
    }
    if (!is_main) {
      text_ = absl::StrFormat(
          "def %s(%s):\n", function.name,
          absl::StrJoin(
              expressions_, ", ",
              [](std::string* out, const auto& e) { out->append(e.text); }));
    }
    const std::size_t head = text_.size();
    const std::vector<int> returns = Flatten(function, values);
    CountUses(returns);
    const FunctionInfo& info = program_.functions.at(function.name);
    Schedule(info, returns);
    auto prints = prints_.begin();
    const auto write_prints = [&] {
      for (const std::vector<int>& values : *prints) {
        Line(absl::StrCat("print(", Join(values), ")"));
      }
      ++prints;
    };
    for (const Step& step : steps_) {
      if (step.prints) write_prints();
      if (step.node->kind == ir::NodeKind::kCall) {
        Call(step);
      } else {
        Operation(step);
      }
    }
    write_prints();
    if (info.returns_value) {
      Line(absl::StrCat("return ", expressions_[returns[0]].text));
    } else if (!is_main && text_.size() == head) {
      Line("return");
    }
    for (const std::string& name : taken_) names_.erase(name);
    return std::move(text_);
  }

 private:
  // A node outside of fused regions. Values are numbered across these.
  struct Step {
    const ir::Node* node;
    std::vector<int> inputs;
    std::vector<int> outputs;
    bool prints = false;  // a call
    int phase = 0;        // how many such calls come first
  };

  const FunctionInfo& Called(const Step& call) const {
    return program_.functions.at(graph_.functions[call.node->index].name);
  }

  int Add(const ir::Value& value) {
    hints_.push_back(value.name);
    expressions_.emplace_back();
    return static_cast<int>(hints_.size()) - 1;
  }

  // values: the numbers of the arguments. Returns those of what is returned.
  std::vector<int> Flatten(const ir::Function& function,
                           std::vector<int> values) {
    const auto numbers = [&](const std::vector<ir::ValueId>& of) {
      std::vector<int> result;
      for (const ir::ValueId value : of) result.push_back(values[value]);
      return result;
    };
    for (const ir::Node& node : function.nodes) {
      if (node.kind == ir::NodeKind::kFused) {
        std::vector<int> inner(node.body->values.size(), -1);
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
          inner[node.body->arguments[i]] = values[node.inputs[i]];
        }
        const std::vector<int> results = Flatten(*node.body, std::move(inner));
        for (std::size_t i = 0; i < results.size(); ++i) {
          values[node.outputs[i]] = results[i];
        }
        continue;
      }
      for (const ir::ValueId value : node.outputs) {
        values[value] = Add(function.values[value]);
      }
      steps_.push_back({&node, numbers(node.inputs), numbers(node.outputs)});
      steps_.back().prints = node.kind == ir::NodeKind::kCall &&
                             !Called(steps_.back()).prints.empty();
    }
    return numbers(function.returns);
  }

  // The language converts without a word: int + float.
  static bool IsConversion(const ir::Node& node) {
    return node.kind == ir::NodeKind::kOp &&
           dynamic_cast<const CopyPrimitive*>(node.op.primitive.get()) !=
               nullptr;
  }

  void CountUses(const std::vector<int>& returns) {
    uses_.resize(hints_.size());
    for (const int value : returns) ++uses_[value];
    for (std::size_t i = steps_.size(); i-- > 0;) {
      const Step& step = steps_[i];
      for (const int value : step.inputs) {
        uses_[value] += IsConversion(*step.node) ? uses_[step.outputs[0]] : 1;
      }
    }
  }

  // Finds the function's own prints, those before each call that prints and
  // those after the last. What they print is to be known by then, though Fuse
  // may have put it into a region after the call.
  void Schedule(const FunctionInfo& info, const std::vector<int>& returns) {
    auto print = info.prints.begin();
    auto value = returns.begin() + (info.returns_value ? 1 : 0);
    int phase = 0;
    // By value: the phase that needs it.
    std::vector<int> due(hints_.size(), std::numeric_limits<int>::max());
    const auto skip = [&] { value += (print++)->arguments; };
    const auto find_prints = [&](bool to_the_end) {
      prints_.emplace_back();
      for (; print != info.prints.end() && (to_the_end || !print->by_call);
           skip()) {
        prints_.back().emplace_back(value, value + print->arguments);
        for (const int v : prints_.back().back()) {
          due[v] = std::min(due[v], phase);
        }
      }
    };
    for (Step& step : steps_) {
      step.phase = phase;
      if (!step.prints) continue;
      find_prints(/*to_the_end=*/false);
      for (std::size_t i = Called(step).prints.size(); i > 0; --i) skip();
      ++phase;
    }
    find_prints(/*to_the_end=*/true);
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      for (const int v : step->outputs) {
        step->phase = std::min(step->phase, due[v]);
      }
      for (const int v : step->inputs) due[v] = std::min(due[v], step->phase);
    }
    std::stable_sort(steps_.begin(), steps_.end(),
                     [](const Step& a, const Step& b) {
                       return std::make_pair(a.phase, a.prints) <
                              std::make_pair(b.phase, b.prints);
                     });
  }

  // ---- Text.

  void Line(const std::string& line) {
    absl::StrAppend(&text_, indent_, line, "\n");
  }
  std::string NewName(int value) {
    taken_.push_back(
        Unique(hints_[value].empty() ? "v" : hints_[value], names_));
    return taken_.back();
  }
  std::string Join(const std::vector<int>& values) const {
    return absl::StrJoin(values, ", ", [this](std::string* out, int value) {
      out->append(expressions_[value].text);
    });
  }
  // In parentheses unless it holds together more tightly than `level`.
  std::string Operand(int value, int level) const {
    const Expression& e = expressions_[value];
    return e.level > level ? e.text : absl::StrCat("(", e.text, ")");
  }

  // A value that is used once is written where it is used.
  void Define(const Step& step, std::string text, int level) {
    Expression e = {std::move(text), level, 1};
    for (const int input : step.inputs) {
      e.depth = std::max(e.depth, 1 + expressions_[input].depth);
    }
    const int value = step.outputs[0];
    if (uses_[value] != 1 || e.depth > kMaxDepth) {
      const std::string name = NewName(value);
      Line(absl::StrCat(name, " = ", e.text));
      e = {name};
    }
    expressions_[value] = std::move(e);
  }

  void Call(const Step& step) {
    const FunctionInfo& called = Called(step);
    const std::string text = absl::StrCat(
        graph_.functions[step.node->index].name, "(", Join(step.inputs), ")");
    if (!called.returns_value || uses_[step.outputs[0]] == 0) {
      Line(text);
      return;
    }
    // It prints now, not where its value is used.
    if (step.prints) ++uses_[step.outputs[0]];
    Define(step, text, kAtomLevel);
  }

  void Operation(const Step& step) {
    const ir::Node& node = *step.node;
    if (node.kind == ir::NodeKind::kConstant) {
      expressions_[step.outputs[0]] = Literal(node.constant);
      return;
    }
    const Primitive* const primitive =
        node.kind == ir::NodeKind::kOp ? node.op.primitive.get() : nullptr;
    const auto* const unary = dynamic_cast<const UnaryPrimitive*>(primitive);
    const auto* const binary = dynamic_cast<const BinaryPrimitive*>(primitive);
    if (IsConversion(node)) {
      expressions_[step.outputs[0]] = expressions_[step.inputs[0]];
      return;
    }
    if (unary != nullptr && unary->op == kernels::UnaryOp::kNegative) {
      Define(step, "-" + Operand(step.inputs[0], kProductLevel), kUnaryLevel);
      return;
    }
    if (binary != nullptr && binary->which == BinaryPrimitive::Which::kNone) {
      for (const Operator& o : kOperators) {
        if (o.op != binary->op) continue;
        Define(step,
               absl::StrFormat("%s %c %s", Operand(step.inputs[0], o.level),
                               o.sign, Operand(step.inputs[1], o.level)),
               o.level);
        return;
      }
    }
    throw std::invalid_argument(absl::StrFormat(
        "the language has no %s",
        primitive == nullptr ? "weight or write in place" : primitive->name()));
  }

  const ir::Graph& graph_;
  const Program& program_;
  Names& names_;
  std::vector<std::string> taken_;  // of names_, by variables
  std::string indent_;
  std::string text_;
  std::vector<Step> steps_;
  std::vector<std::vector<std::vector<int>>> prints_;  // values, by phase
  // By value.
  std::vector<std::string> hints_;  // names in the graph
  std::vector<Expression> expressions_;
  std::vector<int> uses_;
};

}  // namespace

std::string Run(const Program& program, const Executor& executor) {
  const std::vector<Tensor> results = executor(program.graph);
  auto result = results.begin();
  std::string text;
  const std::string& main = program.graph.main().name;
  for (const Print& print : program.functions.at(main).prints) {
    for (int i = 0; i < print.arguments; ++i) {
      absl::StrAppend(&text, i == 0 ? "" : " ", Repr(*result++));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::string ToPython(const ir::Graph& graph, const Program& program) {
  Names names;
  for (const ir::Function& function : graph.functions) {
    names.emplace(function.name, 1);
  }
  std::string text;
  for (const ir::Function& function : graph.functions) {
    absl::StrAppend(&text, text.empty() ? "" : "\n",
                    Writer(graph, program, names).Write(function));
  }
  return text;
}

std::int64_t CountCalls(const ir::Graph& graph) {
  // More is this.
  constexpr std::int64_t kMost = std::int64_t{1} << 61;
  std::vector<std::int64_t> calls;
  for (const ir::Function& function : graph.functions) {
    std::int64_t count = 0;
    for (const ir::Node& node : function.nodes) {
      if (node.kind != ir::NodeKind::kCall) continue;
      count = std::min(kMost, count + 1 + calls[node.index]);
    }
    calls.push_back(count);
  }
  return calls.back();
}

}  // namespace d2l::language
