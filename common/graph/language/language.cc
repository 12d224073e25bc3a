#include "common/graph/language/language.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/source_location.h"
#include "common/graph/passes/passes.h"
#include "common/kernels/op_tables.h"
#include "common/ops/creation.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/read.h"

namespace d2l::language {
namespace {

// Operators of a higher level bind more tightly.
enum Level { kSumLevel, kProductLevel, kUnaryLevel, kAtomLevel };
constexpr struct {
  char sign;
  int level;
  kernels::BinaryOp op;
  const char* name;  // of the operation
} kOperators[] = {{'+', kSumLevel, kernels::BinaryOp::kAdd, "add"},
                  {'-', kSumLevel, kernels::BinaryOp::kSubtract, "sub"},
                  {'*', kProductLevel, kernels::BinaryOp::kMultiply, "mul"}};

// Whether the character belongs to names and numbers.
bool IsWordCharacter(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Parses text into a graph, line by line, by recursive descent.
class Parser {
 public:
  Parser(std::string_view file, Device device)
      : file_(Intern(file)), device_(device) {}

  ir::Graph Parse(absl::string_view text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number_;
      line_ = rest_ = line;
      Skip();
      if (!rest_.empty()) Statement();
    }
    if (scope_ != &module_) Fail(rest_, "expected a return of the function");
    module_.function.name = "main";
    while (functions_.count(module_.function.name) > 0) {
      module_.function.name += "_";
    }
    graph_.functions.push_back(std::move(module_.function));
    ir::Verify(graph_);  // calls may be nested too deep
    // A chain of functions that call the one above twice grows exponentially.
    ir::Graph inlined = graph_;
    ir::Inline(inlined);
    return std::move(graph_);
  }

 private:
  // The variables of a function, or of the module, while it is parsed.
  using Variables = std::map<absl::string_view, ir::ValueId>;
  struct Scope {
    ir::Function function;
    Variables variables;
  };

  // `at` is a part of the line.
  template <typename... Args>
  [[noreturn]] void Fail(absl::string_view at,
                         const absl::FormatSpec<Args...>& format,
                         const Args&... args) const {
    const auto before = static_cast<std::size_t>(at.data() - line_.data());
    throw std::invalid_argument(absl::StrFormat(
        "%s:%d:%d: %s\n    %s\n    %s^", file_, number_, before + 1,
        absl::StrFormat(format, args...), line_, std::string(before, ' ')));
  }
  [[noreturn]] void FailToFind(absl::string_view what) const {
    Fail(rest_, "expected %s; got %s", what,
         rest_.empty()
             ? "the end of the line"
             : absl::StrCat("\"", absl::CHexEscape(rest_.substr(0, 1)), "\""));
  }

  // Skips to the next word or symbol; a comment ends the line.
  void Skip() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \r"), rest_.size()));
    if (!rest_.empty() && rest_[0] == '#') rest_.remove_prefix(rest_.size());
  }
  bool Take(char symbol) {
    if (rest_.empty() || rest_[0] != symbol) return false;
    rest_.remove_prefix(1);
    Skip();
    return true;
  }
  void Expect(char symbol) {
    if (!Take(symbol)) FailToFind(absl::StrFormat("\"%c\"", symbol));
  }
  // The name, number or keyword at the start; may be empty.
  absl::string_view Word() const {
    return rest_.substr(
        0, std::find_if_not(rest_.begin(), rest_.end(), IsWordCharacter) -
               rest_.begin());
  }
  absl::string_view TakeWord() {
    const absl::string_view word = Word();
    rest_.remove_prefix(word.size());
    Skip();
    return word;
  }
  bool TakeKeyword(absl::string_view keyword) {
    return Word() == keyword && !TakeWord().empty();
  }
  absl::string_view Name(absl::string_view what) {
    const absl::string_view name = Word();
    if (name.empty() || absl::ascii_isdigit(name[0])) FailToFind(what);
    for (const absl::string_view keyword : {"def", "print", "return"}) {
      if (name == keyword) Fail(name, "\"%s\" cannot stand here", name);
    }
    return TakeWord();
  }
  // A name of no function above and of none of `variables`.
  absl::string_view NewName(absl::string_view what,
                            const Variables& variables) {
    const absl::string_view name = Name(what);
    if (functions_.count(name) + variables.count(name) > 0) {
      Fail(name, "\"%s\" is defined already", name);
    }
    return name;
  }
  // Calls f() for each element of a list in parentheses.
  template <typename F>
  void List(const F& f) {
    Expect('(');
    if (Take(')')) return;
    do {
      f();
    } while (Take(','));
    Expect(')');
  }

  void Statement() {
    const std::size_t indent = line_.size() - rest_.size();
    const bool in_module = scope_ == &module_;
    const std::size_t wanted = in_module ? 0 : 4;
    if (indent != wanted) {
      Fail(rest_, "expected %d spaces before it; got %d", wanted, indent);
    }
    if (in_module && TakeKeyword("def")) {
      Define();
    } else if (in_module && TakeKeyword("print")) {
      Expect('(');
      module_.function.returns.push_back(Expression());
      Expect(')');
    } else if (!in_module && TakeKeyword("return")) {
      Return();
    } else {
      const absl::string_view name = NewName("a statement", {});
      Expect('=');
      Assign(name, Expression());
    }
    if (!rest_.empty()) FailToFind("an operator or the end of the line");
  }

  void Define() {
    scope_ = &function_;
    function_ = {ir::Function(std::string(
                     NewName("the name of the function", module_.variables))),
                 {}};
    List([&] {
      const absl::string_view name =
          NewName("the name of an argument", function_.variables);
      Assign(name, function_.function.AddArgument(
                       ir::TypeOf({{}, DType::kInt64, device_})));
    });
    Expect(':');
  }

  void Return() {
    function_.function.returns = {Expression()};
    functions_[function_.function.name] =
        static_cast<int>(graph_.functions.size());
    graph_.functions.push_back(std::move(function_.function));
    scope_ = &module_;
  }

  void Assign(absl::string_view name, ir::ValueId value) {
    const bool is_new = scope_->variables.insert_or_assign(name, value).second;
    std::string& first = scope_->function.values[value].name;
    if (is_new && first.empty()) first = std::string(name);
  }

  SourceLocation Here() const { return {file_, number_}; }

  // Parses operators of this level and of higher ones.
  ir::ValueId Expression(int level = kSumLevel) {
    if (level == kUnaryLevel) return Factor();
    ir::ValueId left = Expression(level + 1);
    for (;;) {
      const auto* const op = std::find_if(
          std::begin(kOperators), std::end(kOperators),
          [&](const auto& o) { return o.level == level && Take(o.sign); });
      if (op == std::end(kOperators)) return left;
      const ir::ValueId right = Expression(level + 1);
      left = scope_->function.AddOp(
          BinaryPrimitive(op->op, BinaryPrimitive::Which::kNone, 0),
          {left, right}, Here());
    }
  }

  ir::ValueId Factor() {
    if (++nesting_ > kMaxNesting) {
      Fail(rest_, "more than %d expressions in each other", kMaxNesting);
    }
    ir::ValueId value = -1;
    const bool negative = Take('-');
    if (!rest_.empty() && absl::ascii_isdigit(rest_[0])) {
      const absl::string_view digits = TakeWord();
      std::int64_t integer = 0;
      // The sign belongs to the literal, so that the least integer has one.
      if (!absl::SimpleAtoi(absl::StrCat(negative ? "-" : "", digits),
                            &integer)) {
        Fail(digits, "\"%s\" is no integer from -2**63 to 2**63 - 1", digits);
      }
      value = scope_->function.AddConstant(
          FromVector<std::int64_t>({integer}, {}, device_));
    } else if (negative) {
      value = scope_->function.AddOp(
          UnaryPrimitive(kernels::UnaryOp::kNegative), {Factor()}, Here());
    } else if (Take('(')) {
      value = Expression();
      Expect(')');
    } else {
      value = VariableOrCall();
    }
    --nesting_;
    return value;
  }

  ir::ValueId VariableOrCall() {
    const absl::string_view name = Name("a number, a name or \"(\"");
    if (rest_.empty() || rest_[0] != '(') {
      const auto found = scope_->variables.find(name);
      if (found != scope_->variables.end()) return found->second;
      Fail(name, "\"%s\" is not defined here", name);
    }
    const auto callee = functions_.find(name);
    if (callee == functions_.end()) {
      Fail(name, "no function \"%s\" is defined above", name);
    }
    std::vector<ir::ValueId> operands;
    List([&] { operands.push_back(Expression()); });
    const std::size_t arguments =
        graph_.functions[callee->second].arguments.size();
    if (operands.size() != arguments) {
      Fail(name, "\"%s\" takes %d argument%s; got %d", name, arguments,
           arguments == 1 ? "" : "s", operands.size());
    }
    return scope_->function.AddCall(graph_, callee->second, operands,
                                    Here())[0];
  }

  const char* const file_;
  const Device device_;
  absl::string_view line_;
  absl::string_view rest_;  // of the line
  int number_ = 0;          // of the line
  int nesting_ = 0;
  std::map<std::string, int, std::less<>> functions_;  // of the graph
  Scope module_;
  Scope function_;
  Scope* scope_ = &module_;
  ir::Graph graph_;
};

// Writes one function.
class Writer {
 public:
  Writer(const ir::Graph& program, const ir::Function& function,
         const std::set<absl::string_view>& functions)
      : program_(program),
        function_(function),
        functions_(functions),
        is_main_(&function == &program.main()),
        expressions_(function.values.size()),
        uses_(function.values.size()) {
    for (const ir::Value& value : function.values) names_.insert(value.name);
    for (const ir::ValueId value : function.returns) ++uses_[value];
    for (const ir::Node& node : function.nodes) {
      for (const ir::ValueId value : node.inputs) ++uses_[value];
    }
  }

  std::string Write() {
    for (const ir::ValueId value : function_.arguments) {
      expressions_[value].text = NameOf(value);
    }
    if (!is_main_) {
      text_ = absl::StrFormat("def %s(%s):\n", function_.name,
                              Join(function_.arguments));
    }
    for (const ir::Node& node : function_.nodes) Write(node);
    for (const ir::ValueId value : function_.returns) {
      const std::string& result = expressions_[value].text;
      Line(is_main_ ? absl::StrCat("print(", result, ")")
                    : absl::StrCat("return ", result));
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
  std::string NameOf(ir::ValueId value) {
    std::string name = function_.values[value].name;
    if (!name.empty()) return name;
    do {
      name = absl::StrCat("v", ++numbered_);
    } while (names_.count(name) + functions_.count(name) > 0);
    return name;
  }
  std::string Join(const std::vector<ir::ValueId>& values) const {
    return absl::StrJoin(values, ", ",
                         [this](std::string* out, ir::ValueId value) {
                           out->append(expressions_[value].text);
                         });
  }
  // Adds parentheses unless the value binds more tightly than `level`.
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
      const std::string name = NameOf(value);
      Line(absl::StrCat(name, " = ", e.text));
      e = {name};
    }
    expressions_[value] = std::move(e);
  }

  Expression ExpressionOf(const ir::Node& node) const {
    if (node.kind == ir::NodeKind::kConstant) {
      const std::int64_t number = Item<std::int64_t>(node.constant);
      return {absl::StrCat(number), number < 0 ? kUnaryLevel : kAtomLevel};
    }
    if (node.kind == ir::NodeKind::kCall) {
      return {absl::StrCat(program_.functions[node.index].name, "(",
                           Join(node.inputs), ")")};
    }
    const std::string_view name = node.kind == ir::NodeKind::kOp
                                      ? node.op.primitive->name()
                                      : "weight, write or fused region";
    if (name == "neg") {
      return {"-" + Operand(node.inputs[0], kProductLevel), kUnaryLevel};
    }
    for (const auto& o : kOperators) {
      if (name != o.name || node.inputs.size() != 2) continue;
      return {absl::StrFormat("%s %c %s", Operand(node.inputs[0], o.level),
                              o.sign, Operand(node.inputs[1], o.level)),
              o.level};
    }
    throw std::invalid_argument(
        absl::StrFormat("the language has no %s", name));
  }

  const ir::Graph& program_;
  const ir::Function& function_;
  const std::set<absl::string_view>& functions_;  // their names
  std::set<absl::string_view> names_;             // of the values
  const bool is_main_;
  int numbered_ = 0;
  std::string text_;
  // By value.
  std::vector<Expression> expressions_;
  std::vector<int> uses_;
};

}  // namespace

absl::StatusOr<ir::Graph> Compile(std::string_view text, std::string_view file,
                                  Device device) {
  try {
    return Parser(file, device).Parse({text.data(), text.size()});
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

std::string Run(const ir::Graph& program) {
  std::string text;
  for (const Tensor& printed : ir::Run(program, {})) {
    absl::StrAppend(&text, Item<std::int64_t>(printed), "\n");
  }
  return text;
}

std::string ToPython(const ir::Graph& program) {
  std::set<absl::string_view> names;
  for (const ir::Function& function : program.functions) {
    names.insert(function.name);
  }
  return absl::StrJoin(program.functions, "\n",
                       [&](std::string* out, const ir::Function& function) {
                         out->append(Writer(program, function, names).Write());
                       });
}

int CountCalls(const ir::Graph& program) {
  std::vector<int> calls;
  for (const ir::Function& function : program.functions) {
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
