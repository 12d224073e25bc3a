#include "common/graph/language/parser.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/text.h"
#include "common/graph/language/language.h"

namespace d2l::language {
namespace {

class Parser {
 public:
  explicit Parser(absl::string_view text) : tokens_(Tokenize(text)) {
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].text != "def") continue;
      defined_at_.emplace(tokens_[i + 1].text, tokens_[i].at.line);
    }
  }

  std::vector<Definition> Run() {
    module_.definition.name = "main";
    while (Now().kind != Token::kEnd) {
      if (Now().at.column != 1) Fail(Now().at, "this line is indented");
      if (Now().text == "def") {
        Function();
        scope_ = &module_;
      } else {
        Statement();
      }
    }
    definitions_.push_back(std::move(module_.definition));
    return std::move(definitions_);
  }

 private:
  using Table = std::map<absl::string_view, int>;
  // A function, or the module.
  struct Scope {
    Definition definition;
    Table variables;  // the instructions that made their values
    bool is_function = false;
  };

  static int Find(const Table& names, absl::string_view name) {
    const auto found = names.find(name);
    return found == names.end() ? -1 : found->second;
  }

  // ---- Tokens.

  const Token& Now() const { return tokens_[at_]; }
  bool Take(char kind) {
    const bool is = Now().kind == kind;
    at_ += is ? 1 : 0;
    return is;
  }
  void Expect(char kind, absl::string_view what) {
    if (Take(kind)) return;
    Expected(what);
  }
  [[noreturn]] void Expected(absl::string_view what) const {
    Fail(Now().at, absl::StrFormat("expected %s; got %s", what,
                                   Now().text.empty()
                                       ? "the end of the line"
                                       : absl::StrCat("\"", Now().text, "\"")));
  }

  // f() for each of a list in parentheses.
  template <typename F>
  void List(const F& f) {
    Expect('(', "\"(\"");
    if (Take(')')) return;
    do {
      f();
    } while (Take(','));
    Expect(')', "an operator, \",\" or \")\"");
  }

  // ---- Names.

  const Token& Name(absl::string_view what) {
    const Token& name = Now();
    Expect(Token::kName, what);
    if (IsReserved(name.text)) {
      Fail(name.at, absl::StrFormat("\"%s\" cannot stand here; there are def, "
                                    "return, print, = and expressions",
                                    name.text));
    }
    return name;
  }

  // Of a new variable or argument.
  void Assign(const Token& name, int value) {
    if (Find(functions_, name.text) >= 0) {
      Fail(name.at, absl::StrFormat("\"%s\" is a function; give the variable "
                                    "another name",
                                    name.text));
    }
    std::string& first = scope_->definition.code[value].name;
    if (first.empty()) first = std::string(name.text);
    scope_->variables[name.text] = value;
  }

  [[noreturn]] void Undefined(const Token& name) const {
    std::string text = absl::StrFormat("\"%s\" is not defined here", name.text);
    if (const int line = Find(defined_at_, name.text); line >= 0) {
      Fail(name.at, absl::StrFormat("%s, but at line %d; a function is called "
                                    "below it only",
                                    text, line));
    }
    if (Find(module_.variables, name.text) >= 0) {
      Fail(name.at, absl::StrFormat("%s, but in the module; give it to \"%s\" "
                                    "as an argument",
                                    text, scope_->definition.name));
    }
    absl::string_view nearest;
    std::size_t distance = name.text.size() / 3 + 2;
    const Table& variables = scope_->variables;
    for (const Table* names : {&variables, &functions_}) {
      for (const auto& [candidate, unused] : *names) {
        const std::size_t d = EditDistance(name.text, candidate);
        if (d >= distance) continue;
        distance = d;
        nearest = candidate;
      }
    }
    if (!nearest.empty()) {
      absl::StrAppend(&text, ". Did you mean \"", nearest, "\"?");
    }
    Fail(name.at, std::move(text));
  }

  // ---- Statements.

  void Function() {
    Scope scope;
    scope.is_function = true;
    Definition& function = scope.definition;
    ++at_;
    const Token& name = Name("the name of the function");
    function.name = std::string(name.text);
    if (Find(functions_, name.text) >= 0 ||
        Find(scope_->variables, name.text) >= 0) {
      Fail(name.at, absl::StrFormat("\"%s\" is defined already", name.text));
    }
    scope_ = &scope;
    List([&] {
      const Token& argument = Name("the name of an argument");
      if (Find(scope.variables, argument.text) >= 0) {
        Fail(argument.at, absl::StrFormat("a second argument is called \"%s\"",
                                          argument.text));
      }
      Assign(argument, Emit(Code::kArgument, argument.at));
      ++function.arguments;
    });
    Expect(':', "\":\"");
    if (Take(Token::kNewline)) {
      const int column = Now().at.column;
      if (column == 1 || Now().kind == Token::kEnd) {
        Fail(Now().at, absl::StrFormat("expected the body of \"%s\", indented",
                                       name.text));
      }
      while (Now().kind != Token::kEnd && Now().at.column != 1) {
        if (Now().at.column != column) {
          Fail(Now().at, absl::StrFormat("expected %d spaces, as in the lines "
                                         "above; got %d",
                                         column - 1, Now().at.column - 1));
        }
        Statement();
      }
    } else {
      Statement();
    }
    const auto end = std::find_if(
        function.code.begin(), function.code.end(),
        [](const Instruction& in) { return in.code == Code::kReturn; });
    if (end != function.code.end()) {
      function.returns_value = !end->operands.empty();
      function.code.erase(end + 1, function.code.end());
    }
    functions_[name.text] = static_cast<int>(definitions_.size());
    definitions_.push_back(std::move(function));
  }

  void Statement() {
    const Token& first = Now();
    std::vector<int> operands;
    if (first.text == "return" && scope_->is_function) {
      ++at_;
      if (Now().kind != Token::kNewline) operands.push_back(Expression());
      Emit(Code::kReturn, first.at, std::move(operands));
    } else if (first.text == "print") {
      ++at_;
      List([&] { operands.push_back(Expression()); });
      Emit(Code::kPrint, first.at, std::move(operands));
    } else if (first.kind == Token::kName && tokens_[at_ + 1].kind == '=') {
      const Token& name = Name("");
      ++at_;
      const int value = Expression();
      CheckHasValue(value);
      Assign(name, value);
    } else {
      Expression();  // a call, whose value nothing needs
    }
    Expect(Token::kNewline, "an operator or the end of the line");
  }

  // ---- Expressions. They return the number of their instruction.

  int Expression(int level = kSumLevel) {
    if (level == kUnaryLevel) return Factor();
    int left = Expression(level + 1);
    for (;;) {
      const Token& token = Now();
      const auto* const found = std::find_if(
          std::begin(kOperators), std::end(kOperators), [&](const auto& o) {
            return o.sign == token.kind && o.level == level;
          });
      if (found == std::end(kOperators)) return left;
      ++at_;
      left = Emit(Code::kBinary, token.at, {left, Expression(level + 1)});
      scope_->definition.code[left].op = found->op;
    }
  }

  int Factor() {
    const Position at = Now().at;
    if (++nesting_ > kMaxNesting) {
      Fail(at, absl::StrFormat("more than %d expressions in each other; assign "
                               "some to variables",
                               kMaxNesting));
    }
    int value = -1;
    if (Take('-')) {
      value = Now().kind == Token::kNumber
                  ? Literal("-")
                  : Emit(Code::kNegate, at, {Factor()});
    } else if (Take('(')) {
      value = Expression();
      Expect(')', "an operator or \")\"");
    } else if (Now().kind == Token::kNumber) {
      value = Literal("");
    } else {
      const Token& name = Name("a number, a name or \"(\"");
      value = Now().kind == '(' ? Call(name) : Variable(name);
    }
    --nesting_;
    return value;
  }

  // The sign belongs to it, so that the least integer has a literal.
  int Literal(absl::string_view sign) {
    const Token& token = Now();
    ++at_;
    const std::string text = absl::StrCat(sign, token.text);
    Number number;
    std::int64_t integer = 0;
    double real = 0;  // beyond the largest it is infinity, as in Python
    const bool is_integer =
        token.text.find_first_not_of("0123456789") == absl::string_view::npos;
    if (is_integer && absl::SimpleAtoi(text, &integer)) {
      number = integer;
    } else if (!is_integer && absl::SimpleAtod(text, &real) &&
               token.text.find_first_not_of("0123456789.eE+-") ==
                   absl::string_view::npos) {
      number = real;
    } else if (is_integer) {
      Fail(token.at, "an integer beyond int64, -2**63 to 2**63 - 1");
    } else {
      Fail(token.at, absl::StrFormat("\"%s\" is no number", token.text));
    }
    if (is_integer && token.text[0] == '0' && integer != 0) {
      Fail(token.at, "an integer begins with another digit than 0");
    }
    const int value = Emit(Code::kLiteral, token.at);
    scope_->definition.code[value].number = number;
    return value;
  }

  int Variable(const Token& name) const {
    const int value = Find(scope_->variables, name.text);
    if (value >= 0) return value;
    if (Find(functions_, name.text) < 0) Undefined(name);
    Fail(name.at,
         absl::StrFormat("\"%s\" is a function; a call has ( )", name.text));
  }

  int Call(const Token& name) {
    if (Find(scope_->variables, name.text) >= 0) {
      Fail(name.at,
           absl::StrFormat("\"%s\" is a variable, no function", name.text));
    }
    const int callee = Find(functions_, name.text);
    if (callee < 0) Undefined(name);
    std::vector<int> operands;
    List([&] { operands.push_back(Expression()); });
    const int wanted = definitions_[callee].arguments;
    if (static_cast<int>(operands.size()) != wanted) {
      Fail(name.at,
           absl::StrFormat("\"%s\" takes %d argument%s; got %d", name.text,
                           wanted, wanted == 1 ? "" : "s", operands.size()));
    }
    const int value = Emit(Code::kCall, name.at, std::move(operands));
    scope_->definition.code[value].callee = callee;
    return value;
  }

  void CheckHasValue(int value) const {
    const Instruction& made = scope_->definition.code[value];
    if (made.code != Code::kCall) return;
    const Definition& callee = definitions_[made.callee];
    if (callee.returns_value) return;
    Fail(made.at, absl::StrFormat("\"%s\" returns no value", callee.name));
  }

  int Emit(Code code, Position at, std::vector<int> operands = {}) {
    for (const int value : operands) CheckHasValue(value);
    std::vector<Instruction>& instructions = scope_->definition.code;
    instructions.emplace_back();
    instructions.back().code = code;
    instructions.back().at = at;
    instructions.back().operands = std::move(operands);
    return static_cast<int>(instructions.size()) - 1;
  }

  const std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Table defined_at_;  // the lines of all functions
  std::vector<Definition> definitions_;
  Table functions_;  // in definitions_
  Scope module_;
  Scope* scope_ = &module_;
  int nesting_ = 0;
};

}  // namespace

std::vector<Definition> Parse(absl::string_view text) {
  return Parser(text).Run();
}

}  // namespace d2l::language
