// Compile: instructions become an ir::Graph.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/source_location.h"
#include "common/graph/language/language.h"
#include "common/graph/language/parser.h"
#include "common/graph/language/tokens.h"
#include "common/kernels/op_tables.h"
#include "common/ops/creation.h"
#include "common/ops/primitive/primitives.h"
#include "common/tensor/dtype.h"

namespace d2l::language {
namespace {

using kernels::BinaryOp;

// Goes through the program with its numbers, for what would be a wrong result
// in int64 or an exception in Python, and for the number of steps.
class Checker {
 public:
  explicit Checker(const std::vector<Definition>& definitions)
      : definitions_(definitions) {}

  struct Result {
    std::optional<Number> value;
    std::int64_t printed = 0;
  };

  Result Run(const Definition& function, const std::vector<Number>& arguments,
             int depth = 1) {
    Result result;
    std::vector<Number> values(function.code.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Instruction& in = function.code[i];
      std::vector<Number> operands;
      for (const int value : in.operands) operands.push_back(values[value]);
      Count(in, 1);
      switch (in.code) {
        case Code::kArgument:
          values[i] = arguments[i];
          break;
        case Code::kLiteral:
          values[i] = in.number;
          break;
        case Code::kCall: {
          if (depth == kMaxCallDepth) {
            Fail(in.at, absl::StrFormat("calls in each other, more than %d",
                                        kMaxCallDepth - 1));
          }
          const Result call = Run(definitions_[in.callee], operands, depth + 1);
          Count(in, call.printed);  // they are results of each call
          result.printed += call.printed;
          if (call.value.has_value()) values[i] = *call.value;
          break;
        }
        case Code::kPrint:
          Count(in, static_cast<std::int64_t>(operands.size()));
          result.printed += 1 + static_cast<std::int64_t>(operands.size());
          break;
        case Code::kReturn:
          if (!operands.empty()) result.value = operands[0];
          return result;
        case Code::kNegate:
          if (const auto* real = std::get_if<double>(&operands[0])) {
            values[i] = -*real;
          } else {
            values[i] = Integer(in, BinaryOp::kSubtract, 0,
                                std::get<std::int64_t>(operands[0]));
          }
          break;
        case Code::kBinary:
          values[i] = Binary(in, operands[0], operands[1]);
          break;
      }
    }
    return result;
  }

 private:
  void Count(const Instruction& in, std::int64_t steps) {
    steps_ += steps;
    if (steps_ <= kMaxSteps) return;
    Fail(in.at, absl::StrFormat("the program takes more than %d steps here",
                                kMaxSteps));
  }

  static std::int64_t Integer(const Instruction& in, BinaryOp op,
                              std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (op == BinaryOp::kAdd        ? __builtin_add_overflow(a, b, &result)
        : op == BinaryOp::kSubtract ? __builtin_sub_overflow(a, b, &result)
                                    : __builtin_mul_overflow(a, b, &result)) {
      Fail(in.at,
           "the result is beyond int64, -2**63 to 2**63 - 1; with a float, "
           "such as 2.0, it is one");
    }
    return result;
  }

  static double Real(const Instruction& in, double a, double b) {
    if (in.op == BinaryOp::kAdd) return a + b;
    if (in.op == BinaryOp::kSubtract) return a - b;
    if (in.op == BinaryOp::kMultiply) return a * b;
    if (b == 0) Fail(in.at, "division by zero");
    return a / b;
  }

  Number Binary(const Instruction& in, const Number& a, const Number& b) {
    const auto* const x = std::get_if<std::int64_t>(&a);
    const auto* const y = std::get_if<std::int64_t>(&b);
    const bool integers = x != nullptr && y != nullptr;
    if (integers && in.op != BinaryOp::kDivide) {
      return Integer(in, in.op, *x, *y);
    }
    Count(in, (x != nullptr) + (y != nullptr));  // they are converted
    return Real(in, ToReal(in, a, integers), ToReal(in, b, integers));
  }

  // exactly: Python divides integers as such, and rounds once.
  static double ToReal(const Instruction& in, const Number& number,
                       bool exactly) {
    if (const auto* real = std::get_if<double>(&number)) return *real;
    const std::int64_t integer = std::get<std::int64_t>(number);
    const auto real = static_cast<double>(integer);
    if (exactly &&
        (real == 0x1p63 || static_cast<std::int64_t>(real) != integer)) {
      Fail(in.at, absl::StrFormat("%d has no exact float64 to divide; nearest "
                                  "is %.0f",
                                  integer, real));
    }
    return real;
  }

  const std::vector<Definition>& definitions_;
  std::int64_t steps_ = 0;
};

class Lowering {
 public:
  Lowering(const std::vector<Definition>& definitions, const char* file,
           Device device)
      : definitions_(definitions), file_(file), device_(device) {}

  Program Run() {
    Lower(static_cast<int>(definitions_.size()) - 1, {});
    return std::move(program_);
  }

 private:
  using Types = std::vector<DType>;

  // Returns the number of the function of the graph.
  int Lower(int definition, const Types& types) {
    const auto key = std::make_pair(definition, types);
    const auto found = lowered_.find(key);
    if (found != lowered_.end()) return found->second;
    const Definition& from = definitions_[definition];
    ir::Function to;
    FunctionInfo info;
    info.returns_value = from.returns_value;
    std::vector<ir::ValueId> values(from.code.size(), -1);
    std::vector<ir::ValueId> printed;
    Names names;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Instruction& in = from.code[i];
      std::vector<ir::ValueId> operands;
      for (const int value : in.operands) operands.push_back(values[value]);
      const SourceLocation at(file_, in.at.line);
      switch (in.code) {
        case Code::kArgument:
          values[i] = to.AddArgument(ir::TypeOf({{}, types[i], device_}));
          break;
        case Code::kLiteral:
          values[i] = to.AddConstant(std::visit(
              [&](auto x) { return FromVector<decltype(x)>({x}, {}, device_); },
              in.number));
          break;
        case Code::kPrint:
          info.prints.push_back({static_cast<int>(operands.size()), false});
          printed.insert(printed.end(), operands.begin(), operands.end());
          break;
        case Code::kCall: {
          Types wanted;
          for (const ir::ValueId x : operands) {
            wanted.push_back(to.type(x).dtype());
          }
          const int callee = Lower(in.callee, wanted);
          const FunctionInfo& called =
              program_.functions[program_.graph.functions[callee].name];
          const std::vector<ir::ValueId> results =
              to.AddCall(program_.graph, callee, operands, at);
          if (called.returns_value) values[i] = results[0];
          printed.insert(printed.end(),
                         results.begin() + (called.returns_value ? 1 : 0),
                         results.end());
          for (const Print& print : called.prints) {
            info.prints.push_back({print.arguments, true});
          }
          break;
        }
        case Code::kNegate:
          values[i] = to.AddOp(UnaryPrimitive(kernels::UnaryOp::kNegative),
                               operands, at);
          break;
        case Code::kBinary:
          values[i] = Binary(in.op, operands, at, to);
          break;
        case Code::kReturn:
          to.returns = operands;
          break;
      }
      if (values[i] >= 0 && !in.name.empty()) {
        to.values[values[i]].name = Unique(in.name, names);
      }
    }
    to.returns.insert(to.returns.end(), printed.begin(), printed.end());
    to.name = Unique(from.name, names_);
    program_.functions[to.name] = std::move(info);
    program_.graph.functions.push_back(std::move(to));
    const int index = static_cast<int>(program_.graph.functions.size()) - 1;
    lowered_.emplace(key, index);
    return index;
  }

  ir::ValueId Binary(BinaryOp op, std::vector<ir::ValueId> operands,
                     SourceLocation at, ir::Function& to) const {
    const auto is_float = [&](int i) {
      return to.type(operands[i]).dtype() == DType::kFloat64;
    };
    if (op == BinaryOp::kDivide || is_float(0) || is_float(1)) {
      for (int i = 0; i < 2; ++i) {
        if (is_float(i)) continue;
        operands[i] =
            to.AddOp(CopyPrimitive("to", {{}, DType::kFloat64, device_}),
                     {operands[i]}, at);
      }
    }
    return to.AddOp(BinaryPrimitive(op, BinaryPrimitive::Which::kNone, 0),
                    operands, at);
  }

  const std::vector<Definition>& definitions_;
  const char* const file_;
  const Device device_;
  Names names_;  // of functions
  std::map<std::pair<int, Types>, int> lowered_;
  Program program_;
};

// The line of the text, what is around the column if it is long, and a caret.
std::string Show(absl::string_view text, Position at) {
  constexpr std::size_t kWidth = 76;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  std::string line(lines[at.line - 1]);
  std::size_t column = at.column - 1;
  if (line.size() > kWidth) {
    const std::size_t begin = column > kWidth / 2 ? column - kWidth / 2 : 0;
    line = line.substr(begin, kWidth);
    column -= begin;
  }
  for (char& c : line) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return absl::StrCat("    ", line, "\n    ", std::string(column, ' '), "^");
}

}  // namespace

absl::StatusOr<Program> Compile(std::string_view text, std::string_view file,
                                Device device) {
  const absl::string_view code(text.data(), text.size());
  const std::string name(file);
  if (code.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: a program of %d bytes; at most %d are taken", name,
                        code.size(), kMaxBytes));
  }
  try {
    const std::vector<Definition> definitions = Parse(code);
    Checker(definitions).Run(definitions.back(), {});
    return Lowering(definitions, Intern(file), device).Run();
  } catch (const CompileError& error) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s:%d:%d: %s\n%s", name, error.at.line,
                        error.at.column, error.what, Show(code, error.at)));
  }
}

}  // namespace d2l::language
