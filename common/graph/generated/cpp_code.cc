#include "common/graph/generated/cpp_code.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/graph/strips.h"
#include "common/ops/copy_primitives.h"
#include "common/ops/elementwise_primitives.h"

namespace d2l::ir {
namespace {

using kernels::BinaryOp;
using kernels::UnaryOp;

// Of a region's values between loops; they are on the stack, 4 KB at most each.
constexpr int kMaxBuffers = 32;

constexpr absl::string_view kPrelude = R"cpp(
#include <stdint.h>

  // out[i] = f(a[i]) for n elements: a loop of the kernels.
  typedef void (*Loop)(void* out, const void* a, const void*, const void*,
                       int64_t n);

  // A loop's result may be the memory of an argument, element for element.
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
)cpp";

// What the code may call, by name. NaN stays NaN in all of them.
const std::map<absl::string_view, absl::string_view>& Helpers() {
  static const auto& helpers =
      *new std::map<absl::string_view, absl::string_view>{{"absolute", R"(
inline float absolute(float a) { return __builtin_fabsf(a); }
inline double absolute(double a) { return __builtin_fabs(a); }
inline int64_t absolute(int64_t a) { return a < 0 ? -a : a; }
inline uint8_t absolute(uint8_t a) { return a; }
)"},
                                                          {"maximum", R"(
template <typename T>
T maximum(T a, T b) {
  const T larger = a > b ? a : b;
  return a == a ? larger : a;
}
)"},
                                                          {"minimum", R"(
template <typename T>
T minimum(T a, T b) {
  const T smaller = a < b ? a : b;
  return a == a ? smaller : a;
}
)"},
                                                          {"relu", R"(
template <typename T>
T relu(T a) {
  return a < T{0} ? T{0} : a;
}
)"},
                                                          {"square_root", R"(
inline float square_root(float a) { return __builtin_sqrtf(a); }
inline double square_root(double a) { return __builtin_sqrt(a); }
)"},
                                                          {"where", R"(
template <typename T>
T where(uint8_t condition, T a, T b) {
  return condition ? a : b;
}
)"}};
  return helpers;
}

const char* CppType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
    case DType::kInt64:
      return "int64_t";
    case DType::kUInt8:
      return "uint8_t";
  }
  return "void";
}

template <typename T>
std::string Literal(T value) {
  if constexpr (std::is_integral_v<T>) {
    const bool smallest = value == std::numeric_limits<std::int64_t>::min();
    return absl::StrCat(
        CppType(DTypeOf<T>::value), "{",
        smallest ? std::string("INT64_MIN") : std::to_string(value), "}");
  } else {
    const char* const suffix = sizeof(T) == sizeof(float) ? "f" : "";
    if (!std::isfinite(value)) {
      return absl::StrCat(std::signbit(value) ? "-" : "", "__builtin_",
                          std::isinf(value) ? "inf" : "nan", suffix,
                          std::isinf(value) ? "()" : "(\"\")");
    }
    char digits[32];  // as many as tell it from its neighbours
    const auto end =
        std::to_chars(std::begin(digits), std::end(digits), value).ptr;
    const absl::string_view text(digits, end - digits);
    const bool whole = text.find_first_of(".e") == absl::string_view::npos;
    return absl::StrCat(text, whole ? ".0" : "", suffix);
  }
}

std::string Literal(Scalar scalar, DType dtype) {
  return VisitDType(
      dtype, [&](auto zero) { return Literal(scalar.To<decltype(zero)>()); });
}

std::string Identifier(absl::string_view text) {
  std::string name =
      text.empty() || absl::ascii_isdigit(static_cast<unsigned char>(text[0]))
          ? "v"
          : "";
  for (const char c : text) {
    name += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
  }
  return name;
}

// On one line, and not a part of the next.
std::string Comment(absl::string_view text) {
  std::string comment;
  for (const char c : text) {
    const bool harmless = absl::ascii_isprint(static_cast<unsigned char>(c));
    comment += harmless && c != '\\' && c != '?' ? c : '_';
  }
  return comment;
}

// "v0", "v1", ... by value, in the order of definition, as in ir_text.h.
std::vector<std::string> Names(const Function& function) {
  std::vector<std::string> names(function.values.size());
  int next = 0;
  const auto name = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      const std::string& its = function.values[value].name;
      names[value] = its.empty() ? absl::StrCat("v", next++)
                                 : absl::StrCat(Identifier(its), "_", value);
    }
  };
  name(function.arguments);
  for (const Node& node : function.nodes) name(node.outputs);
  return names;
}

// The code of one fused region.
class RegionWriter {
 public:
  RegionWriter(const Function& body, std::set<absl::string_view>& helpers)
      : body_(body),
        helpers_(helpers),
        names_(Names(body)),
        shape_(body.type(body.nodes[0].outputs[0]).shape()) {}

  // "" if it has an operation for which there is no code.
  std::string Write(const std::string& name,
                    std::vector<kernels::cpu::LoopFn>& loops) {
    // Values that a later loop reads have to be in memory.
    std::map<ValueId, int> part_of;
    for (const ValueId value : body_.arguments) part_of[value] = -1;
    int part = 0;
    for (const Node& node : body_.nodes) {
      const bool call = LoopOf(node) != nullptr;
      if (call && !IsVector(node.inputs[0])) return "";
      part += call;
      for (const ValueId value : node.inputs) {
        if (part_of[value] >= 0 && part_of[value] != part) Keep(value);
      }
      if (call) Keep(node.outputs[0]);
      part_of[node.outputs[0]] = part;
      part += call;
    }
    for (const ValueId value : body_.returns) buffer_of_[value] = Out(value);
    std::string code;
    Declare(code);
    if (buffers_ > kMaxBuffers) return "";
    bool in_loop = false;
    for (const Node& node : body_.nodes) {
      const ValueId output = node.outputs[0];
      const kernels::cpu::LoopFn loop = LoopOf(node);
      if (in_loop && loop != nullptr) EndLoop(code, in_loop);
      if (loop != nullptr) {
        absl::StrAppend(&code, "  loops[", loops.size(), "](",
                        buffer_of_.at(output), ", ", Address(node.inputs[0]),
                        ", nullptr, nullptr, n);  // ", Describe(node), "\n");
        loops.push_back(loop);
        in_memory_.insert(output);
        continue;
      }
      const std::string expression = Expression(node);
      if (expression.empty()) return "";
      if (!in_loop) {
        absl::StrAppend(&code,
                        "  INDEPENDENT\n"
                        "  for (int64_t i = 0; i < n; ++i) {\n");
        in_loop = true;
      }
      absl::StrAppend(&code, "    const ", Type(output), " ", names_[output],
                      " = ", expression, ";\n");
      const auto buffer = buffer_of_.find(output);
      if (buffer != buffer_of_.end()) {
        absl::StrAppend(&code, "    ", buffer->second, "[i] = ", names_[output],
                        ";\n");
      }
      in_loop_.insert(output);
    }
    if (in_loop) EndLoop(code, in_loop);
    return absl::StrCat(
        "extern \"C\" void ", name, "(void* const* memory, const Loop*",
        loops.empty() ? "" : " loops", ", int64_t n) {\n", code, "}\n");
  }

 private:
  std::string Type(ValueId value) const {
    return CppType(body_.type(value).dtype());
  }
  std::string Out(ValueId value) const {
    return absl::StrCat(names_[value], "_out");
  }
  bool IsArgument(ValueId value) const {
    for (const ValueId argument : body_.arguments) {
      if (argument == value) return true;
    }
    return false;
  }
  bool IsVector(ValueId value) const {
    return StepsOf(body_.type(value), shape_) != Steps::kOne;
  }

  void Keep(ValueId value) {
    buffer_of_[value] = absl::StrCat(names_[value], "_strip");
  }

  void EndLoop(std::string& code, bool& in_loop) {
    absl::StrAppend(&code, "  }\n");
    in_loop = false;
    for (const ValueId value : in_loop_) in_memory_.insert(value);
    in_loop_.clear();
  }

  // Names for the memory.
  void Declare(std::string& code) {
    int index = 0;
    for (const ValueId value : body_.arguments) {
      const std::string type = Type(value);
      const char* const pointer = IsVector(value) ? "* const " : " ";
      absl::StrAppend(&code, "  const ", type, pointer, names_[value], " = ",
                      IsVector(value) ? "" : "*", "(const ", type, "*)memory[",
                      index++, "];  // ", TypeToString(body_.type(value)),
                      "\n");
    }
    for (const ValueId value : body_.returns) {
      absl::StrAppend(&code, "  ", Type(value), "* const ", Out(value), " = (",
                      Type(value), "*)memory[", index++, "];  // ",
                      TypeToString(body_.type(value)), "\n");
    }
    for (const auto& [value, buffer] : buffer_of_) {
      if (buffer == Out(value)) continue;
      ++buffers_;
      absl::StrAppend(&code, "  alignas(64) ", Type(value), " ", buffer, "[",
                      Strips::kElements, "];\n");
    }
  }

  // For a loop of the kernels.
  std::string Address(ValueId value) const {
    const auto buffer = buffer_of_.find(value);
    return buffer != buffer_of_.end() ? buffer->second : names_[value];
  }

  // In a loop.
  std::string Use(ValueId value) const {
    if (in_memory_.count(value) != 0) {
      return absl::StrCat(buffer_of_.at(value), "[i]");
    }
    return IsArgument(value) && IsVector(value)
               ? absl::StrCat(names_[value], "[i]")
               : names_[value];
  }

  std::string Call(absl::string_view helper,
                   const std::vector<std::string>& operands) {
    helpers_.insert(helper);
    return absl::StrCat(helper, "(", absl::StrJoin(operands, ", "), ")");
  }

  // The kernels' loop for an operation that is not cheap; else null.
  kernels::cpu::LoopFn LoopOf(const Node& node) const {
    const Primitive* const primitive = node.op.primitive.get();
    const DType dtype = body_.type(node.inputs[0]).dtype();
    const DType result = body_.type(node.outputs[0]).dtype();
    if (const auto* unary = dynamic_cast<const UnaryPrimitive*>(primitive)) {
      switch (unary->op()) {
        case UnaryOp::kExp:
        case UnaryOp::kLog:
        case UnaryOp::kTanh:
        case UnaryOp::kSigmoid:
        case UnaryOp::kGelu:
          return kernels::cpu::UnaryLoop(unary->op(), dtype);
        default:
          return nullptr;
      }
    }
    const bool saturates = dynamic_cast<const CopyPrimitive*>(primitive) &&
                           IsFloatingPoint(dtype) && !IsFloatingPoint(result);
    return saturates ? kernels::cpu::CopyLoop(result, dtype) : nullptr;
  }

  std::string Describe(const Node& node) const {
    const auto* unary =
        dynamic_cast<const UnaryPrimitive*>(node.op.primitive.get());
    return unary != nullptr ? OpName(unary->op())
                            : absl::StrCat("to ", Type(node.outputs[0]));
  }

  // "" if there is none.
  std::string Expression(const Node& node) {
    const Primitive* const primitive = node.op.primitive.get();
    const DType dtype = body_.type(node.inputs[0]).dtype();
    const DType result = body_.type(node.outputs[0]).dtype();
    const std::string first = Use(node.inputs[0]);
    if (const auto* unary = dynamic_cast<const UnaryPrimitive*>(primitive)) {
      return Unary(unary->op(), first);
    }
    if (const auto* binary = dynamic_cast<const BinaryPrimitive*>(primitive)) {
      using Which = BinaryPrimitive::Which;
      std::string a = first;
      std::string b = binary->which() == Which::kNone
                          ? Use(node.inputs[1])
                          : Literal(binary->scalar(), dtype);
      if (binary->which() == Which::kFirst) std::swap(a, b);
      return Binary(binary->op(), dtype, a, b);
    }
    if (const auto* choice = dynamic_cast<const WherePrimitive*>(primitive)) {
      std::size_t next = 1;
      const auto operand = [&](const absl::optional<Scalar>& number) {
        return number.has_value() ? Literal(*number, result)
                                  : Use(node.inputs[next++]);
      };
      const std::string a = operand(choice->a());
      return Call("where", {first, a, operand(choice->b())});
    }
    if (dtype == result) return first;  // a CopyPrimitive
    return absl::StrCat("(", CppType(result), ")", first);
  }

  std::string Unary(UnaryOp op, const std::string& a) {
    switch (op) {
      case UnaryOp::kNegative:
        return absl::StrCat("-", a);
      case UnaryOp::kAbs:
        return Call("absolute", {a});
      case UnaryOp::kRelu:
        return Call("relu", {a});
      case UnaryOp::kSquare:
        return absl::StrCat(a, " * ", a);
      case UnaryOp::kSqrt:
        return Call("square_root", {a});
      default:
        return "";
    }
  }

  std::string Binary(BinaryOp op, DType dtype, const std::string& a,
                     const std::string& b) {
    const auto with = [&](const char* sign) {
      return absl::StrCat(a, sign, b);
    };
    switch (op) {
      case BinaryOp::kAdd:
        return with(" + ");
      case BinaryOp::kSubtract:
        return with(" - ");
      case BinaryOp::kMultiply:
        return with(" * ");
      case BinaryOp::kDivide:
        return IsFloatingPoint(dtype)
                   ? with(" / ")
                   : absl::StrCat("(float)", a, " / (float)", b);
      case BinaryOp::kMaximum:
        return Call("maximum", {a, b});
      case BinaryOp::kMinimum:
        return Call("minimum", {a, b});
      case BinaryOp::kEqual:
        return with(" == ");
      case BinaryOp::kNotEqual:
        return with(" != ");
      case BinaryOp::kLess:
        return with(" < ");
      case BinaryOp::kLessEqual:
        return with(" <= ");
      case BinaryOp::kGreater:
        return with(" > ");
      case BinaryOp::kGreaterEqual:
        return with(" >= ");
      default:
        return "";
    }
  }

  const Function& body_;
  std::set<absl::string_view>& helpers_;
  const std::vector<std::string> names_;
  const Shape shape_;
  std::map<ValueId, std::string> buffer_of_;  // and the results' memory
  int buffers_ = 0;
  std::set<ValueId> in_loop_;    // values of the loop that is being written
  std::set<ValueId> in_memory_;  // those of the ones before
};

}  // namespace

GeneratedCpp GenerateCpp(const Graph& graph) {
  const Function& main = graph.main();
  const std::vector<std::string> names = Names(main);
  const auto list = [&names](const std::vector<ValueId>& values) {
    return absl::StrJoin(values, ", ", [&](std::string* out, ValueId value) {
      absl::StrAppend(out, names[value]);
    });
  };
  GeneratedCpp result;
  std::set<absl::string_view> helpers;
  std::string program, functions;
  for (const Node& node : main.nodes) {
    std::string what;
    if (node.kind == NodeKind::kWeight) {
      what = absl::StrCat("weight ", graph.weights[node.index].name);
    } else if (node.kind == NodeKind::kConstant) {
      what = "a constant";
    } else if (node.kind == NodeKind::kFused) {
      GeneratedRegion& region = result.regions.emplace_back();
      const std::string name =
          absl::StrCat(Identifier(main.name), "_", result.regions.size() - 1);
      const std::string code =
          RegionWriter(*node.body, helpers).Write(name, region.loops);
      if (!code.empty()) region.name = name;
      what = absl::StrCat(code.empty() ? "strips" : name, "(",
                          list(node.inputs), ")");
      absl::StrAppend(
          &functions, "\n",
          node.op.requested_at.known()
              ? absl::StrCat("// ", Comment(node.op.requested_at.ToString()),
                             "\n")
              : "",
          code);
    } else {
      what = absl::StrCat(node.op.primitive->name(), "(", list(node.inputs),
                          node.target < 0 ? "" : ", in place", ")");
    }
    absl::StrAppend(&program, "//   ",
                    node.target < 0 ? list(node.outputs) : names[node.target],
                    " = ", Comment(what), "\n");
  }
  result.source = absl::StrCat(
      "// ", Comment(main.name), "(", list(main.arguments),
      "), in this order:\n", program, "//   return ", list(main.returns),
      "\n//\n// Fused regions are the functions below, one strip of at most ",
      Strips::kElements,
      "\n// elements at a time. What else there is are kernels.\n", kPrelude);
  for (const absl::string_view helper : helpers) {
    absl::StrAppend(&result.source, Helpers().at(helper));
  }
  absl::StrAppend(&result.source, functions);
  return result;
}

std::vector<std::string> CppFlags() {
  // As the kernels' loops: nothing is contracted or reassociated; errno and the
  // floating-point exceptions are not looked at; integers wrap around; one
  // memory may hold values of several types in turn.
  std::vector<std::string> flags = {"-std=c++17",
                                    "-O3",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fwrapv",
                                    "-fno-strict-aliasing",
                                    "-fPIC",
                                    "-shared",
                                    "-w"};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq")) {
    for (const char* set : {"f", "vl", "bw", "dq"}) {
      flags.push_back(absl::StrCat("-mavx512", set));
    }
  } else if (__builtin_cpu_supports("avx2")) {
    flags.push_back("-mavx2");
  }
#endif
  return flags;
}

}  // namespace d2l::ir
