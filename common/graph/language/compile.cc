// Compile: text becomes an ir::Graph.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/source_location.h"
#include "common/graph/language/language.h"
#include "common/graph/passes/passes.h"
#include "common/kernels/op_tables.h"
#include "common/ops/creation.h"
#include "common/ops/primitive/primitives.h"

namespace d2l::language {
namespace {

using kernels::BinaryOp;

struct Token {
  char kind = 0;  // the symbol, '\n', or one of these:
  static constexpr char kName = 'a';
  static constexpr char kNumber = '0';
  static constexpr char kEnd = '\0';

  absl::string_view text;
  int line = 1;
  int column = 1;
};

struct CompileError {
  Token at;
  std::string what;
};

template <typename... Args>
[[noreturn]] void Fail(const Token& at, const absl::FormatSpec<Args...>& format,
                       const Args&... args) {
  throw CompileError{at, absl::StrFormat(format, args...)};
}

// Of a name or a number; "1.5" and "1x" are one word, and no number.
bool IsWordCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '.';
}

// A '\n' ends each line that is not blank; within parentheses it is a space.
std::vector<Token> Tokenize(absl::string_view text) {
  std::vector<Token> tokens;
  Token token;
  int parentheses = 0;
  for (; !text.empty(); text.remove_prefix(token.text.size())) {
    const char c = text[0];
    token.kind = c;
    token.text = text.substr(0, 1);
    if (c == '\n') {
      if (parentheses == 0 && !tokens.empty() && tokens.back().kind != '\n') {
        tokens.push_back(token);
      }
      ++token.line;
      token.column = 1;
      continue;
    }
    if (c == '#') {
      token.text = text.substr(0, text.find('\n'));
    } else if (IsWordCharacter(c)) {
      const bool is_name =
          absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_';
      const auto* const end =
          std::find_if_not(text.begin(), text.end(), IsWordCharacter);
      token.kind = is_name ? Token::kName : Token::kNumber;
      token.text = text.substr(0, end - text.begin());
      tokens.push_back(token);
    } else if (absl::StrContains("+-*(),:=", token.text)) {
      parentheses += (c == '(') - (c == ')');
      tokens.push_back(token);
    } else if (c != ' ' && c != '\r') {
      Fail(token, "no character of this language: \"%s\"",
           absl::CHexEscape(token.text));
    }
    token.column += static_cast<int>(token.text.size());
  }
  token.text = "";
  if (!tokens.empty() && tokens.back().kind != '\n') {
    token.kind = '\n';
    tokens.push_back(token);
  }
  token.kind = Token::kEnd;
  tokens.push_back(token);
  return tokens;
}

// Parses text into a graph, by recursive descent.
class Parser {
 public:
  Parser(absl::string_view text, std::string_view file, Device device)
      : tokens_(Tokenize(text)), file_(Intern(file)), device_(device) {}

  Program Run() {
    while (Now().kind != Token::kEnd) {
      if (Now().column != 1) Fail(Now(), "this line is indented");
      if (Now().text == "def") {
        Define();
      } else {
        Statement();
      }
    }
    module_.function.name = "main";
    while (functions_.count(module_.function.name) > 0) {
      module_.function.name += "_";
    }
    program_.graph.functions.push_back(std::move(module_.function));
    return std::move(program_);
  }

 private:
  // What a function, or the module, has while it is parsed.
  struct Scope {
    ir::Function function;
    std::map<absl::string_view, ir::ValueId> variables;
  };

  // ---- Tokens.

  const Token& Now() const { return tokens_[at_]; }
  bool Take(char kind) {
    const bool is = Now().kind == kind;
    at_ += is ? 1 : 0;
    return is;
  }
  void Expect(char kind, absl::string_view what) {
    if (Take(kind)) return;
    const bool is_end = Now().kind == '\n' || Now().kind == Token::kEnd;
    Fail(Now(), "expected %s; got %s", what,
         is_end ? "the end of the line" : absl::StrCat("\"", Now().text, "\""));
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
  const Token& Name(absl::string_view what) {
    const Token& name = Now();
    Expect(Token::kName, what);
    for (const absl::string_view word : {"def", "print", "return"}) {
      if (name.text == word) Fail(name, "\"%s\" cannot stand here", word);
    }
    return name;
  }

  // ---- Functions and statements.

  void Define() {
    ++at_;
    const Token& name = Name("the name of the function");
    if (functions_.count(name.text) + module_.variables.count(name.text) > 0) {
      Fail(name, "\"%s\" is defined already", name.text);
    }
    Scope scope;
    scope_ = &scope;
    List([&] {
      const Token& argument = Name("the name of an argument");
      if (scope.variables.count(argument.text) > 0) {
        Fail(argument, "a second argument is called \"%s\"", argument.text);
      }
      Assign(argument, scope.function.AddArgument(
                           ir::TypeOf({{}, DType::kInt64, device_})));
    });
    Expect(':', "\":\"");
    const bool is_block = Take('\n');
    const int column = Now().column;
    for (;;) {
      if (Now().kind == Token::kEnd || (is_block && Now().column == 1)) {
        Fail(Now(),
             "expected the body of \"%s\", indented, with a return at "
             "its end",
             name.text);
      }
      if (is_block && Now().column != column) {
        Fail(Now(), "expected %d spaces, as in the lines above; got %d",
             column - 1, Now().column - 1);
      }
      if (Now().text == "return") break;
      Statement();
    }
    ++at_;
    scope.function.returns = {Expression()};
    EndOfLine();
    scope_ = &module_;
    functions_[name.text] = static_cast<int>(program_.graph.functions.size());
    scope.function.name = std::string(name.text);
    program_.graph.functions.push_back(std::move(scope.function));
  }

  // Of the module; in a function, no print.
  void Statement() {
    const Token& first = Now();
    if (first.text == "print" && scope_ == &module_) {
      ++at_;
      std::vector<ir::ValueId>& printed = scope_->function.returns;
      const std::size_t before = printed.size();
      List([&] { printed.push_back(Expression()); });
      program_.prints.push_back(static_cast<int>(printed.size() - before));
    } else if (first.kind == Token::kName && tokens_[at_ + 1].kind == '=') {
      const Token& name = Name("");
      ++at_;
      Assign(name, Expression());
    } else {
      Expression();  // nothing needs its value
    }
    EndOfLine();
  }
  void EndOfLine() { Expect('\n', "an operator or the end of the line"); }

  void Assign(const Token& name, ir::ValueId value) {
    const bool is_new =
        scope_->variables.insert_or_assign(name.text, value).second;
    std::string& first = scope_->function.values[value].name;
    if (is_new && first.empty()) first = std::string(name.text);
  }

  // ---- Expressions.

  SourceLocation At(const Token& token) const { return {file_, token.line}; }
  ir::ValueId Add(const Primitive& primitive, std::vector<ir::ValueId> operands,
                  const Token& at) {
    return scope_->function.AddOp(primitive, std::move(operands), At(at));
  }

  ir::ValueId Expression() {
    ir::ValueId left = Product();
    while (Now().kind == '+' || Now().kind == '-') {
      const Token& sign = tokens_[at_++];
      left = Binary(sign.kind == '+' ? BinaryOp::kAdd : BinaryOp::kSubtract,
                    left, Product(), sign);
    }
    return left;
  }
  ir::ValueId Product() {
    ir::ValueId left = Factor();
    while (Now().kind == '*') {
      const Token& sign = tokens_[at_++];
      left = Binary(BinaryOp::kMultiply, left, Factor(), sign);
    }
    return left;
  }
  ir::ValueId Binary(BinaryOp op, ir::ValueId left, ir::ValueId right,
                     const Token& at) {
    return Add(BinaryPrimitive(op, BinaryPrimitive::Which::kNone, 0),
               {left, right}, at);
  }

  ir::ValueId Factor() {
    const Token& first = Now();
    if (++nesting_ > kMaxNesting) {
      Fail(first, "more than %d expressions in each other", kMaxNesting);
    }
    ir::ValueId value = -1;
    if (Take('-')) {
      value = Now().kind == Token::kNumber
                  ? Literal("-")
                  : Add(UnaryPrimitive(kernels::UnaryOp::kNegative), {Factor()},
                        first);
    } else if (Take('(')) {
      value = Expression();
      Expect(')', "an operator or \")\"");
    } else if (first.kind == Token::kNumber) {
      value = Literal("");
    } else {
      Name("a number, a name or \"(\"");
      value = Now().kind == '(' ? Call(first) : Variable(first);
    }
    --nesting_;
    return value;
  }

  // The sign belongs to it, so that the least integer has a literal.
  ir::ValueId Literal(absl::string_view sign) {
    const Token& token = Now();
    ++at_;
    std::int64_t integer = 0;
    if (!absl::SimpleAtoi(absl::StrCat(sign, token.text), &integer)) {
      Fail(token, "\"%s\" is no integer from -2**63 to 2**63 - 1", token.text);
    }
    return scope_->function.AddConstant(
        FromVector<std::int64_t>({integer}, {}, device_));
  }

  ir::ValueId Variable(const Token& name) const {
    const auto found = scope_->variables.find(name.text);
    if (found != scope_->variables.end()) return found->second;
    if (functions_.count(name.text) > 0) {
      Fail(name, "\"%s\" is a function; a call has ( )", name.text);
    }
    Fail(name, "\"%s\" is not defined here", name.text);
  }

  ir::ValueId Call(const Token& name) {
    const auto callee = functions_.find(name.text);
    if (scope_->variables.count(name.text) > 0 || callee == functions_.end()) {
      Fail(name, "no function \"%s\" is defined above", name.text);
    }
    std::vector<ir::ValueId> operands;
    List([&] { operands.push_back(Expression()); });
    const std::size_t arguments =
        program_.graph.functions[callee->second].arguments.size();
    if (operands.size() != arguments) {
      Fail(name, "\"%s\" takes %d argument%s; got %d", name.text, arguments,
           arguments == 1 ? "" : "s", operands.size());
    }
    return scope_->function.AddCall(program_.graph, callee->second, operands,
                                    At(name))[0];
  }

  const std::vector<Token> tokens_;
  const char* const file_;
  const Device device_;
  std::size_t at_ = 0;
  int nesting_ = 0;
  std::map<absl::string_view, int> functions_;  // of the graph
  Scope module_;
  Scope* scope_ = &module_;
  Program program_;
};

}  // namespace

absl::StatusOr<Program> Compile(std::string_view text, std::string_view file,
                                Device device) {
  const absl::string_view code(text.data(), text.size());
  const std::string name(file);
  try {
    Program program = Parser(code, file, device).Run();
    ir::Verify(program.graph);  // calls may be nested too deep
    // Functions that call each other twice take ever more.
    ir::Graph inlined = program.graph;
    ir::Inline(inlined);
    return program;
  } catch (const CompileError& error) {
    const std::vector<absl::string_view> lines = absl::StrSplit(code, '\n');
    return absl::InvalidArgumentError(
        absl::StrFormat("%s:%d:%d: %s\n    %s\n    %s^", name, error.at.line,
                        error.at.column, error.what, lines[error.at.line - 1],
                        std::string(error.at.column - 1, ' ')));
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", error.what()));
  }
}

}  // namespace d2l::language
