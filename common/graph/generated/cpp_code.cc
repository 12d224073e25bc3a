#include "common/graph/generated/cpp_code.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
#include "common/graph/strips.h"
#include "common/ops/primitive/primitives.h"

namespace d2l::ir {
namespace {

using kernels::cpu::LoopFn;

// Buffers of values between loops, on the stack, 4 KB at most each.
constexpr int kMaxBuffers = 32;

constexpr absl::string_view kPrelude = R"cpp(
#include <stdint.h>

  // Of n elements.
  typedef void (*Loop)(void* out, const void* a, const void*, const void*,
                       int64_t n);

  // A loop's result may be the memory of an argument, element for element.
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define DEFINE(f)       \
    template <typename T> \
    inline T f
  DEFINE(relu)(T a) { return a < T{0} ? T{0} : a; }
  DEFINE(maximum)(T a, T b) { return a == a ? (a > b ? a : b) : a; }
  DEFINE(minimum)(T a, T b) { return a == a ? (a < b ? a : b) : a; }
  DEFINE(where)(uint8_t condition, T a, T b) { return condition ? a : b; }
  inline float absolute(float a) { return __builtin_fabsf(a); }
  inline double absolute(double a) { return __builtin_fabs(a); }
  inline int64_t absolute(int64_t a) { return a < 0 ? -a : a; }
  inline uint8_t absolute(uint8_t a) { return a; }
  inline float square_root(float a) { return __builtin_sqrtf(a); }
  inline double square_root(double a) { return __builtin_sqrt(a); }
)cpp";

// The code of the cheap operations, by the primitive's name.
const std::map<absl::string_view, const char*>& Forms() {
  static const auto& forms = *new std::map<absl::string_view, const char*>{
      {"abs", "absolute($0)"},
      {"add", "$0 + $1"},
      {"div", "$0 / $1"},
      {"eq", "$0 == $1"},
      {"ge", "$0 >= $1"},
      {"gt", "$0 > $1"},
      {"le", "$0 <= $1"},
      {"lt", "$0 < $1"},
      {"maximum", "maximum($0, $1)"},
      {"minimum", "minimum($0, $1)"},
      {"mul", "$0 * $1"},
      {"ne", "$0 != $1"},
      {"neg", "-$0"},
      {"relu", "relu($0)"},
      {"sqrt", "square_root($0)"},
      {"square", "$0 * $0"},
      {"sub", "$0 - $1"},
      {"where", "where($0, $1, $2)"}};
  return forms;
}

const char* CppType(DType dtype) {
  static constexpr const char* kTypes[] = {"float", "double", "int64_t",
                                           "uint8_t"};
  static_assert(static_cast<int>(DType::kFloat32) == 0 &&
                static_cast<int>(DType::kFloat64) == 1 &&
                static_cast<int>(DType::kInt64) == 2 &&
                static_cast<int>(DType::kUInt8) == 3);
  return kTypes[static_cast<int>(dtype)];
}

// A literal that the compiler turns into the same bits.
template <typename T>
std::string Literal(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value == std::numeric_limits<std::int64_t>::min()
               ? "INT64_MIN"
               : absl::StrCat(CppType(DTypeOf<T>::value), "{", value, "}");
  } else {
    const char* const suffix = sizeof(T) == sizeof(float) ? "f" : "";
    if (!std::isfinite(value)) {
      return absl::StrCat(std::signbit(value) ? "-" : "", "__builtin_",
                          std::isinf(value) ? "inf" : "nan", suffix,
                          std::isinf(value) ? "()" : "(\"\")");
    }
    char digits[32];  // enough to distinguish neighbours
    const auto end =
        std::to_chars(std::begin(digits), std::end(digits), value).ptr;
    const absl::string_view text(digits, end - digits);
    const bool whole = text.find_first_of(".e") == absl::string_view::npos;
    return absl::StrCat(text, whole ? ".0" : "", suffix);
  }
}

std::string Identifier(absl::string_view text) {
  std::string name = "v";
  if (!text.empty() && absl::ascii_isalpha(text[0])) name.clear();
  for (const char c : text) name += absl::ascii_isalnum(c) ? c : '_';
  return name;
}

// The text cannot continue the comment beyond its line.
std::string Comment(absl::string_view text) {
  std::string comment;
  for (const char c : text) {
    comment += absl::ascii_isprint(c) && c != '\\' ? c : '_';
  }
  return comment;
}

// Names by value; values without a name are "v0", "v1", ..., as in the text.
std::vector<std::string> Names(const Function& function) {
  std::vector<std::string> names(function.values.size());
  int next = 0;
  const auto name = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      const std::string& value_name = function.values[value].name;
      names[value] = value_name.empty()
                         ? absl::StrCat("v", next++)
                         : absl::StrCat(Identifier(value_name), "_", value);
    }
  };
  name(function.arguments);
  for (const Node& node : function.nodes) name(node.outputs);
  return names;
}

// The kernels' loop for an operation that is not cheap; else null.
LoopFn LoopOf(const Node& node, const Function& body) {
  const Primitive* const primitive = node.op.primitive.get();
  const DType dtype = body.type(node.inputs[0]).dtype();
  const DType result = body.type(node.outputs[0]).dtype();
  const auto* const unary = dynamic_cast<const UnaryPrimitive*>(primitive);
  if (unary != nullptr && Forms().count(primitive->name()) == 0) {
    return kernels::cpu::UnaryLoop(unary->op, dtype);
  }
  const bool saturates =
      dynamic_cast<const CopyPrimitive*>(primitive) != nullptr &&
      IsFloatingPoint(dtype) && !IsFloatingPoint(result);
  return saturates ? kernels::cpu::CopyLoop(result, dtype) : nullptr;
}

// The code of one fused region.
class RegionWriter {
 public:
  explicit RegionWriter(const Function& body)
      : body_(body),
        names_(Names(body)),
        shape_(body.type(body.nodes[0].outputs[0]).shape()) {}

  // Returns "" if the region has an operation for which there is no code.
  std::string Write(const std::string& name, std::vector<LoopFn>& loops) {
    Declare();
    if (buffers_ > kMaxBuffers) return "";
    std::string code;
    std::vector<ValueId> in_loop;
    const auto end_loop = [&] {
      if (!in_loop.empty()) absl::StrAppend(&code, "  }\n");
      for (const ValueId value : in_loop) {
        if (memory_.count(value) != 0) use_[value] = memory_[value] + "[i]";
      }
      in_loop.clear();
    };
    for (const Node& node : body_.nodes) {
      const ValueId output = node.outputs[0];
      if (const LoopFn loop = LoopOf(node, body_)) {
        end_loop();
        if (memory_.count(node.inputs[0]) == 0) return "";  // it is a number
        absl::StrAppend(&code, "  loops[", loops.size(), "](", memory_[output],
                        ", ", memory_[node.inputs[0]],
                        ", nullptr, nullptr, n);  // ",
                        Comment(node.op.primitive->name()), "\n");
        loops.push_back(loop);
        use_[output] = memory_[output] + "[i]";
        continue;
      }
      const std::string expression = Expression(node);
      if (expression.empty()) return "";
      if (in_loop.empty()) {
        absl::StrAppend(&code,
                        "  INDEPENDENT\n"
                        "  for (int64_t i = 0; i < n; ++i) {\n");
      }
      in_loop.push_back(output);
      use_[output] = names_[output];
      absl::StrAppend(&code, "    const ", Type(output), " ", names_[output],
                      " = ", expression, ";\n");
      if (memory_.count(output) != 0) {
        absl::StrAppend(&code, "    ", memory_[output],
                        "[i] = ", names_[output], ";\n");
      }
    }
    end_loop();
    return absl::StrCat("extern \"C\" void ", name,
                        "(void* const* memory, const Loop*",
                        loops.empty() ? "" : " loops", ", int64_t n) {\n",
                        declarations_, code, "}\n");
  }

 private:
  const char* Type(ValueId value) const {
    return CppType(body_.type(value).dtype());
  }

  bool IsNumber(ValueId value) const {
    return StepsOf(body_.type(value), shape_) == Steps::kOne;
  }

  // Names the memory, and finds the values that need memory.
  void Declare() {
    int index = 0;
    for (const ValueId value : body_.arguments) {
      const Tensor& type = body_.type(value);
      const bool one = IsNumber(value);
      absl::StrAppend(&declarations_, "  const ", Type(value),
                      one ? " " : "* const ", names_[value],
                      one ? " = *" : " = ", "(const ", Type(value), "*)memory[",
                      index++, "];  // ", TypeToString(type), "\n");
      use_[value] = names_[value] + (one ? "" : "[i]");
      if (!one) memory_[value] = names_[value];
    }
    for (const ValueId value : body_.returns) {
      memory_[value] = names_[value] + "_out";
      absl::StrAppend(&declarations_, "  ", Type(value), "* const ",
                      memory_[value], " = (", Type(value), "*)memory[", index++,
                      "];  // ", TypeToString(body_.type(value)), "\n");
    }
    const auto keep = [&](ValueId value) {
      if (use_.count(value) != 0 || memory_.count(value) != 0) return;
      ++buffers_;
      memory_[value] = names_[value] + "_strip";
      absl::StrAppend(&declarations_, "  alignas(64) ", Type(value), " ",
                      memory_[value], "[", Strips::kElements, "];\n");
    };
    // The values that one loop leaves for another.
    std::map<ValueId, int> loop_of;
    int loop = 0;
    for (const Node& node : body_.nodes) {
      const bool call = LoopOf(node, body_) != nullptr;
      loop += call;
      for (const ValueId value : node.inputs) {
        if (loop_of[value] != loop) keep(value);
      }
      if (call) keep(node.outputs[0]);
      loop_of[node.outputs[0]] = loop;
      loop += call;
    }
  }

  // Returns "" if there is no code.
  std::string Expression(const Node& node) const {
    const Primitive* const primitive = node.op.primitive.get();
    const DType dtype = body_.type(node.inputs[0]).dtype();
    const DType result = body_.type(node.outputs[0]).dtype();
    const auto number = [](Scalar scalar, DType scalar_dtype) {
      return VisitDType(scalar_dtype, [&](auto zero) {
        return Literal(scalar.To<decltype(zero)>());
      });
    };
    std::vector<std::string> in;
    for (const ValueId value : node.inputs) in.push_back(use_.at(value));
    if (dynamic_cast<const CopyPrimitive*>(primitive) != nullptr) {
      return dtype == result ? in[0]
                             : absl::StrCat("(", CppType(result), ")", in[0]);
    }
    if (const auto* binary = dynamic_cast<const BinaryPrimitive*>(primitive)) {
      using Which = BinaryPrimitive::Which;
      if (binary->which != Which::kNone) {
        in.insert(binary->which == Which::kFirst ? in.begin() : in.end(),
                  number(binary->scalar, dtype));
      }
      // The kernels do the same: the minimum of 0 and -0 is the second.
      if (kernels::Commutes(binary->op) &&
          (binary->which == Which::kNone
               ? IsNumber(node.inputs[0]) && !IsNumber(node.inputs[1])
               : binary->which == Which::kFirst)) {
        std::swap(in[0], in[1]);
      }
      if (binary->op == kernels::BinaryOp::kDivide && dtype != result) {
        for (std::string& operand : in) operand.insert(0, "(float)");
      }
    }
    if (const auto* where = dynamic_cast<const WherePrimitive*>(primitive)) {
      if (where->a) in.insert(in.begin() + 1, number(*where->a, result));
      if (where->b) in.push_back(number(*where->b, result));
    }
    const auto form = Forms().find(primitive->name());
    if (form == Forms().end()) return "";
    in.resize(3);
    return absl::Substitute(form->second, in[0], in[1], in[2]);
  }

  const Function& body_;
  const std::vector<std::string> names_;
  const Shape shape_;
  std::string declarations_;
  int buffers_ = 0;
  std::map<ValueId, std::string> memory_;  // its name, if any
  std::map<ValueId, std::string> use_;     // how a loop reads it
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
  std::string program, functions;
  for (const Node& node : main.nodes) {
    std::string what;
    if (node.kind == NodeKind::kWeight) {
      what = absl::StrCat("weight ", graph.weights[node.index].name);
    } else if (node.kind == NodeKind::kConstant) {
      what = "a constant";
    } else if (node.kind == NodeKind::kFused) {
      GeneratedRegion region;
      const std::string name =
          absl::StrCat(Identifier(main.name), "_", result.regions.size());
      const std::string code =
          RegionWriter(*node.body).Write(name, region.loops);
      if (!code.empty()) {
        region.name = name;
        absl::StrAppend(&functions, "\n// ",
                        Comment(node.op.requested_at.ToString()), "\n", code);
      }
      result.regions.push_back(std::move(region));
      what = absl::StrCat(code.empty() ? "strips" : name, "(",
                          list(node.inputs), ")");
    } else {
      what = absl::StrCat(node.op.primitive->name(), "(", list(node.inputs),
                          node.target < 0 ? ")" : "), in place");
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
      "\n// elements at a time. What else there is are kernels.\n", kPrelude,
      functions);
  return result;
}

std::vector<std::string> CppFlags() {
  // The rules of the kernels' loops: nothing is contracted or reassociated;
  // nobody reads errno or the floating-point exceptions; integers wrap around;
  // one memory may hold values of several types in turn.
  std::vector<std::string> flags = {"-std=c++17",
                                    "-O3",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fwrapv",
                                    "-fno-trapping-math",
                                    "-fno-strict-aliasing",
                                    "-fPIC",
                                    "-shared",
                                    "-w"};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) flags.push_back("-mavx2");
#endif
  return flags;
}

}  // namespace d2l::ir
