// Compile: text becomes an ir::Graph.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
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
#include "common/graph/language/syntax.h"
#include "common/graph/passes/passes.h"
#include "common/kernels/op_tables.h"
#include "common/ops/creation.h"
#include "common/ops/primitive/primitives.h"
#include "common/tensor/dtype.h"

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

bool IsWordCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// How long the name or the number is. "1e-3" is one, and so is what is no
// number: "1x" and "1.2.3".
std::size_t WordSize(absl::string_view text, bool is_number) {
  std::size_t size = 0;
  for (; size < text.size(); ++size) {
    const char c = text[size];
    const bool is_sign =
        (c == '+' || c == '-') && size > 0 && (text[size - 1] | 32) == 'e';
    if (!IsWordCharacter(c) && !(is_number && (c == '.' || is_sign))) break;
  }
  return size;
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
    } else if (IsWordCharacter(c) || c == '.') {
      const bool is_number =
          c == '.' || absl::ascii_isdigit(static_cast<unsigned char>(c));
      token.kind = is_number ? Token::kNumber : Token::kName;
      token.text = text.substr(0, WordSize(text, is_number));
      tokens.push_back(token);
    } else if (absl::StrContains("+-*/(),:=", token.text)) {
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

// Parses text into a graph. A function is parsed where it stands, with integers
// as its arguments, which finds its errors, and again for each combination of
// types that it is called with.
class Compiler {
 public:
  Compiler(absl::string_view text, std::string_view file, Device device)
      : tokens_(Tokenize(text)), file_(Intern(file)), device_(device) {}

  Program Run() {
    Scope module;
    scope_ = &module;
    while (Now().kind != Token::kEnd) {
      if (Now().column != 1) Fail(Now(), "this line is indented");
      if (Now().text == "def") {
        Define();
      } else {
        Statement();
      }
    }
    AddToGraph("main", module);
    return std::move(program_);
  }

 private:
  struct Definition {
    std::size_t begin = 0;  // its "(", in tokens_
    std::size_t arguments = 0;
    std::map<std::vector<DType>, int> functions;  // of the graph
  };
  // What a function, or the module, has while it is parsed.
  enum class Kind { kModule, kFunction, kCheck };  // kCheck: calls nothing
  struct Scope {
    Kind kind = Kind::kModule;
    ir::Function function;
    std::map<absl::string_view, ir::ValueId> variables;
    Names names;
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
    if (definitions_.count(name.text) + scope_->variables.count(name.text)) {
      Fail(name, "\"%s\" is defined already", name.text);
    }
    Definition definition;
    definition.begin = at_;
    Scope check;
    check.kind = Kind::kCheck;
    definition.arguments = Function(name, {}, check);
    definitions_[name.text] = std::move(definition);
  }

  // Parses it from its "(" on, and returns how many arguments it has. types:
  // theirs, or none if all are integers.
  std::size_t Function(const Token& name, const std::vector<DType>& types,
                       Scope& scope) {
    Scope* const outer = std::exchange(scope_, &scope);
    std::size_t arguments = 0;
    List([&] {
      const Token& argument = Name("the name of an argument");
      if (scope.variables.count(argument.text) > 0) {
        Fail(argument, "a second argument is called \"%s\"", argument.text);
      }
      Assign(argument, scope.function.AddArgument(NumberType(
                           types.empty() ? DType::kInt64 : types[arguments])));
      ++arguments;
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
    scope_ = outer;
    return arguments;
  }

  // Of the module; in a function, no print.
  void Statement() {
    const Token& first = Now();
    if (first.text == "print" && scope_->kind == Kind::kModule) {
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
    std::string& first = scope_->function.values[value].name;
    if (first.empty()) first = Unique(std::string(name.text), scope_->names);
    scope_->variables[name.text] = value;
  }

  int AddToGraph(absl::string_view name, Scope& scope) {
    scope.function.name = Unique(std::string(name), names_);
    program_.graph.functions.push_back(std::move(scope.function));
    return static_cast<int>(program_.graph.functions.size()) - 1;
  }

  // ---- Expressions.

  Tensor NumberType(DType dtype) const {
    return ir::TypeOf({{}, dtype, device_});
  }
  SourceLocation At(const Token& token) const { return {file_, token.line}; }
  ir::ValueId Add(const Primitive& primitive, std::vector<ir::ValueId> operands,
                  const Token& at) {
    return scope_->function.AddOp(primitive, std::move(operands), At(at));
  }

  ir::ValueId Expression(int level = kSumLevel) {
    if (level == kUnaryLevel) return Factor();
    ir::ValueId left = Expression(level + 1);
    for (;;) {
      const Token& token = Now();
      const auto* const found = std::find_if(
          std::begin(kOperators), std::end(kOperators), [&](const auto& o) {
            return o.sign == token.kind && o.level == level;
          });
      if (found == std::end(kOperators)) return left;
      ++at_;
      left = Binary(found->op, {left, Expression(level + 1)}, token);
    }
  }

  ir::ValueId Binary(BinaryOp op, std::vector<ir::ValueId> operands,
                     const Token& at) {
    const auto is_integer = [&](ir::ValueId value) {
      return scope_->function.type(value).dtype() == DType::kInt64;
    };
    if (op == BinaryOp::kDivide ||
        is_integer(operands[0]) != is_integer(operands[1])) {
      const CopyPrimitive to_float("to", {{}, DType::kFloat64, device_});
      for (ir::ValueId& value : operands) {
        if (is_integer(value)) value = Add(to_float, {value}, at);
      }
    }
    return Add(BinaryPrimitive(op, BinaryPrimitive::Which::kNone, 0), operands,
               at);
  }

  ir::ValueId Factor() {
    const Token& first = Now();
    if (++nesting_ > kMaxNesting) {
      Fail(first, "more than %d expressions and calls in each other",
           kMaxNesting);
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
    const std::string text = absl::StrCat(sign, token.text);
    std::int64_t integer = 0;
    double real = 0;  // beyond the largest it is infinity, as in Python
    if (absl::SimpleAtoi(text, &integer)) return Constant(integer);
    if (std::all_of(token.text.begin(), token.text.end(),
                    absl::ascii_isdigit)) {
      Fail(token, "an integer beyond int64, -2**63 to 2**63 - 1");
    }
    const bool is_decimal = token.text.find_first_not_of("0123456789.eE+-") ==
                            absl::string_view::npos;
    if (is_decimal && absl::SimpleAtod(text, &real)) return Constant(real);
    Fail(token, "\"%s\" is no number", token.text);
  }
  template <typename T>
  ir::ValueId Constant(T number) {
    return scope_->function.AddConstant(FromVector<T>({number}, {}, device_));
  }

  ir::ValueId Variable(const Token& name) const {
    const auto found = scope_->variables.find(name.text);
    if (found != scope_->variables.end()) return found->second;
    if (definitions_.count(name.text) > 0) {
      Fail(name, "\"%s\" is a function; a call has ( )", name.text);
    }
    Fail(name, "\"%s\" is not defined here", name.text);
  }

  ir::ValueId Call(const Token& name) {
    const auto found = definitions_.find(name.text);
    if (scope_->variables.count(name.text) > 0 || found == definitions_.end()) {
      Fail(name, "no function \"%s\" is defined above", name.text);
    }
    Definition& callee = found->second;
    std::vector<ir::ValueId> operands;
    List([&] { operands.push_back(Expression()); });
    if (operands.size() != callee.arguments) {
      Fail(name, "\"%s\" takes %d argument%s; got %d", name.text,
           callee.arguments, callee.arguments == 1 ? "" : "s", operands.size());
    }
    ir::Function& function = scope_->function;
    if (scope_->kind == Kind::kCheck) {
      return function.AddArgument(NumberType(DType::kInt64));
    }
    std::vector<DType> types;
    for (const ir::ValueId value : operands) {
      types.push_back(function.type(value).dtype());
    }
    const auto [to, is_new] = callee.functions.emplace(types, -1);
    if (is_new) {
      const std::size_t after = std::exchange(at_, callee.begin);
      Scope scope;
      scope.kind = Kind::kFunction;
      Function(name, types, scope);
      to->second = AddToGraph(name.text, scope);
      at_ = after;
    }
    return function.AddCall(program_.graph, to->second, operands, At(name))[0];
  }

  const std::vector<Token> tokens_;
  const char* const file_;
  const Device device_;
  std::size_t at_ = 0;
  std::map<absl::string_view, Definition> definitions_;
  Names names_;  // of functions of the graph
  Scope* scope_ = nullptr;
  int nesting_ = 0;
  Program program_;
};

}  // namespace

absl::StatusOr<Program> Compile(std::string_view text, std::string_view file,
                                Device device) {
  const absl::string_view code(text.data(), text.size());
  const std::string name(file);
  try {
    Program program = Compiler(code, file, device).Run();
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
