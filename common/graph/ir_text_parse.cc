#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/base/source_location.h"
#include "common/graph/ir_text.h"
#include "common/ops/creation.h"
#include "common/ops/primitive/replay.h"

namespace d2l::ir {
namespace {

// What is wrong with the text; caught by ParseText, which adds the line.
struct ParseError {
  std::string what;
};

class Parser {
 public:
  Parser(absl::string_view text, std::optional<Device> device)
      : text_(text), device_(device) {}

  Graph Parse() {
    Expect(kTextHeader);
    const std::int64_t version = Integer();
    if (version != kTextVersion) throw Version{version};
    EndOfLine();
    if (Take(kTextWeights)) {
      graph_.weights_sha256 = Quoted();
      EndOfLine();
    }
    while (Take("def ")) Definition();
    Expect("run ");
    const std::string name(Word());
    EndOfLine();
    if (at_ != text_.size()) Fail("there is text after the end");
    if (graph_.functions.empty() || graph_.functions.back().name != name) {
      Fail(absl::StrCat("\"run\" names the last function; ", name, " is not"));
    }
    return std::move(graph_);
  }

  struct Version {
    std::int64_t number;
  };
  std::int64_t line() const {
    return 1 + std::count(text_.begin(),
                          text_.begin() + static_cast<std::ptrdiff_t>(at_),
                          '\n');
  }

 private:
  using Names = std::map<std::string, ValueId, std::less<>>;

  [[noreturn]] static void Fail(std::string what) {
    throw ParseError{std::move(what)};
  }

  // ---- Tokens.

  bool Take(absl::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void Expect(absl::string_view token) {
    if (Take(token)) return;
    Fail(at_ == text_.size()
             ? absl::StrCat("the text ends where \"", absl::CEscape(token),
                            "\" is expected")
             : absl::StrCat("\"", absl::CEscape(token), "\" expected; got \"",
                            absl::CHexEscape(text_.substr(at_, 20)), "\""));
  }
  void EndOfLine() { Expect("\n"); }
  void Spaces() {
    while (Take(" ")) {
    }
  }
  // Letters, digits and "_.+-"; in the value of an attribute also ":".
  absl::string_view Word(bool is_value = false) {
    std::size_t end = at_;
    while (end < text_.size() && IsPlain(text_.substr(end, 1)) &&
           (is_value || text_[end] != ':')) {
      ++end;
    }
    if (end == at_) Fail("a name or a number expected");
    const absl::string_view word = text_.substr(at_, end - at_);
    at_ = end;
    return word;
  }
  template <typename T = std::int64_t>
  static T ToNumber(absl::string_view word, int base_or_zero = 10) {
    T value{};
    std::from_chars_result result{};
    if constexpr (std::is_integral_v<T>) {
      result = std::from_chars(word.data(), word.data() + word.size(), value,
                               base_or_zero);
    } else {
      result = std::from_chars(word.data(), word.data() + word.size(), value);
    }
    if (result.ec != std::errc() || result.ptr != word.data() + word.size()) {
      Fail(absl::StrCat("\"", word, "\" is not a number that fits"));
    }
    return value;
  }
  std::int64_t Integer() { return ToNumber(Word()); }
  std::string Quoted() {
    Expect("\"");
    std::size_t end = at_;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    if (end >= text_.size() || text_[end] != '"') Fail("a text without its \"");
    std::string value;
    if (!absl::CUnescape(text_.substr(at_, end - at_), &value) ||
        value.find('\0') != std::string::npos) {
      Fail("a text with an unknown escape");
    }
    at_ = end + 1;
    return value;
  }
  // Without its %.
  std::string ValueName() {
    Expect("%");
    return std::string(Word());
  }

  // f() for each of a list that ends with `close`.
  template <typename F>
  void List(absl::string_view close, F f) {
    if (Take(close)) return;
    do {
      f();
    } while (Take(", "));
    Expect(close);
  }

  // ---- Values.

  ValueId Use(const Names& names) {
    const std::string name = ValueName();
    const auto found = names.find(name);
    if (found == names.end()) {
      Fail(absl::StrCat("%", name, " is used before it is defined"));
    }
    return found->second;
  }
  std::vector<ValueId> Uses(absl::string_view close, const Names& names) {
    std::vector<ValueId> values;
    List(close, [&] { values.push_back(Use(names)); });
    return values;
  }
  static void Define(const std::string& name, ValueId value, Names& names,
                     Function& function) {
    if (!names.emplace(name, value).second) {
      Fail(absl::StrCat("%", name, " is defined twice"));
    }
    const bool numbered =
        std::all_of(name.begin(), name.end(),
                    [](unsigned char c) { return absl::ascii_isdigit(c); });
    if (!numbered) function.values[value].name = name;
  }

  // float32[1, 512] strides (1, 2) on cpu:1
  Tensor Type() {
    ValueSpec spec;
    const std::string name(Word());
    const std::optional<DType> dtype = DTypeNamed(name);
    if (!dtype.has_value()) Fail(absl::StrCat("no dtype is called ", name));
    spec.dtype = *dtype;
    std::vector<std::int64_t> sizes;
    Expect("[");
    List("]", [&] { sizes.push_back(Integer()); });
    spec.shape = Shape(sizes);
    CheckedNumel("type", spec.shape, DTypeSize(spec.dtype));
    std::vector<std::int64_t> strides;
    const bool strided = Take(" strides ");
    if (strided) {
      Expect("(");
      List(")", [&] { strides.push_back(Integer()); });
      CheckStrides(spec.shape, strides);
    }
    if (Take(" on ")) {
      const absl::StatusOr<Device> device = Device::Parse(Word(true));
      if (!device.ok()) Fail(std::string(device.status().message()));
      spec.device = *device;
    }
    spec.device = device_.value_or(spec.device);
    const Tensor type = TypeOf(spec);
    return strided ? Tensor::View(type, 0, spec.shape, Shape(strides)) : type;
  }

  // So that no address computed with them overflows.
  static void CheckStrides(const Shape& shape,
                           const std::vector<std::int64_t>& strides) {
    if (strides.size() != shape.size()) Fail("a stride for each size expected");
    constexpr std::int64_t kMost =
        std::numeric_limits<std::int64_t>::max() / 64;
    std::int64_t reach = 0;
    for (int i = 0; i < shape.rank(); ++i) {
      std::int64_t steps = 0;
      if (strides[i] < 0 || strides[i] > kMost ||
          __builtin_mul_overflow(std::max<std::int64_t>(shape[i], 1),
                                 strides[i], &steps) ||
          __builtin_add_overflow(reach, steps, &reach) || reach > kMost) {
        Fail("strides that reach too far");
      }
    }
  }

  // ---- Nodes.

  void Definition() {
    if (functions_.size() == kMaxNodes) {
      Fail(absl::StrFormat("more than %d functions", kMaxNodes));
    }
    Function function{std::string(Word())};
    const int index = static_cast<int>(graph_.functions.size());
    if (!functions_.emplace(function.name, index).second) {
      Fail(absl::StrCat("two functions are called ", function.name));
    }
    Names names;
    Expect("(");
    List(")", [&] {
      const std::string name = ValueName();
      Expect(": ");
      Define(name, function.AddArgument(Type()), names, function);
    });
    Expect(" {");
    EndOfLine();
    Body(function, names, /*in_fused=*/false);
    graph_.functions.push_back(std::move(function));
  }

  // Up to the line of its closing brace.
  void Body(Function& function, Names& names, bool in_fused) {
    for (;;) {
      Spaces();
      if (Take("return")) break;
      if (++nodes_ > kMaxNodes) {
        Fail(absl::StrFormat("more than %d operations", kMaxNodes));
      }
      ParseNode(function, names, in_fused);
    }
    if (Take(" ")) {
      function.returns = Uses("\n", names);
    } else {
      EndOfLine();
    }
    Spaces();
    Expect("}");
    EndOfLine();
  }

  void ParseNode(Function& function, Names& names, bool in_fused) {
    Node node;
    std::vector<std::string> defined;
    if (Take("write ")) {
      node.kind = NodeKind::kInPlace;
      node.target = Use(names);
      Expect(" = ");
    } else if (text_.substr(at_, 1) == "%") {
      List(" = ", [&] { defined.push_back(ValueName()); });
    }
    std::vector<Tensor> claims;
    bool has_claims = true;
    if (Take("weight ")) {
      node.kind = NodeKind::kWeight;
      const std::string name = Quoted();
      Expect(" : ");
      claims.push_back(Type());
      node.index = IndexOfWeight(name, claims[0]);
      has_claims = false;
    } else if (Take("constant [")) {
      node.kind = NodeKind::kConstant;
      Constant(node);
      has_claims = false;
    } else if (Take("call ")) {
      node.kind = NodeKind::kCall;
      Callee(node, std::string(Word()));
      Expect("(");
      node.inputs = Uses(")", names);
    } else if (Take("fused(")) {
      if (in_fused) Fail("a fused region inside another");
      node.kind = NodeKind::kFused;
      node.inputs = Uses(")", names);
      Expect(" {");
      Lines(node);
      EndOfLine();
      Fused(function, node);
      AddTo(function, std::move(node), defined, {}, names);
      return;
    } else {
      const std::string name(Word());
      Expect("(");
      node.inputs = Uses(")", names);
      Operation(node, name);
    }
    if (in_fused && node.kind != NodeKind::kOp) {
      Fail("a fused region holds operations only");
    }
    if (has_claims && Take(" : ")) {
      do {
        claims.push_back(Type());
      } while (Take(", "));
    }
    Lines(node);
    EndOfLine();
    AddTo(function, std::move(node), defined, claims, names);
  }

  void AddTo(Function& function, Node node,
             const std::vector<std::string>& defined,
             const std::vector<Tensor>& claims, Names& names) {
    node.op.in_place = node.kind == NodeKind::kInPlace;
    const bool is_view =
        node.kind == NodeKind::kOp && IsView(*node.op.primitive);
    const std::vector<ValueId> outputs =
        function.Add(std::move(node), &graph_).outputs;
    if (outputs.size() != defined.size()) {
      Fail(absl::StrFormat("it has %d results; %d are named", outputs.size(),
                           defined.size()));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& type = function.type(outputs[i]);
      if (i < claims.size() && (claims[i].shape() != type.shape() ||
                                claims[i].dtype() != type.dtype() ||
                                claims[i].device() != type.device())) {
        Fail(absl::StrFormat("%%%s is %s, not %s", defined[i],
                             TypeToString(type), TypeToString(claims[i])));
      }
      Define(defined[i], outputs[i], names, function);
      if (!is_view) bytes_ += static_cast<double>(BytesOf(type));
    }
    if (bytes_ > static_cast<double>(kMaxBytes)) {
      Fail(absl::StrFormat("values of more than %d bytes", kMaxBytes));
    }
  }

  // As Graph::AddWeight, which looks at all weights.
  int IndexOfWeight(const std::string& name, const Tensor& type) {
    const auto [found, is_new] =
        weights_.emplace(name, static_cast<int>(graph_.weights.size()));
    if (is_new) {
      graph_.weights.push_back({name, TypeOf(type), {}});
    } else if (!SameType(graph_.weights[found->second].type, type)) {
      graph_.AddWeight(name, type);  // throws
    }
    return found->second;
  }

  void Callee(Node& node, const std::string& name) {
    const auto found = functions_.find(name);
    if (found != functions_.end() &&
        found->second < static_cast<int>(graph_.functions.size())) {
      node.index = found->second;
    } else {
      Fail(absl::StrCat(name,
                        " is called before it is defined; a program has no "
                        "recursion"));
    }
  }

  void Operation(Node& node, const std::string& name) {
    std::vector<Attribute> attributes;
    if (Take(" {")) {
      List("}", [&] {
        const std::string key(Word());
        Expect("=");
        std::string value =
            text_.substr(at_, 1) == "\"" ? Quoted() : std::string(Word(true));
        if (key == "device" && device_.has_value()) value = device_->ToString();
        attributes.emplace_back(key, std::move(value));
      });
    }
    absl::StatusOr<std::unique_ptr<Primitive>> primitive =
        MakePrimitive(name, attributes);
    if (!primitive.ok()) Fail(std::string(primitive.status().message()));
    node.op.primitive = *std::move(primitive);
  }

  void Fused(const Function& outer, Node& node) {
    Function body;
    Names names;
    Spaces();
    Expect("(");
    std::size_t i = 0;
    List(")", [&] {
      if (i == node.inputs.size()) Fail("the region takes more values");
      const ValueId argument = body.AddArgument(outer.type(node.inputs[i++]));
      Define(ValueName(), argument, names, body);
    });
    EndOfLine();
    Body(body, names, /*in_fused=*/true);
    node.body = std::make_shared<const Function>(std::move(body));
  }

  // [1.0, 2.0] : float32[2]
  void Constant(Node& node) {
    std::vector<absl::string_view> words;
    List("]", [&] { words.push_back(Word()); });
    Expect(" : ");
    const Tensor type = Type();
    if (static_cast<std::int64_t>(words.size()) != type.numel()) {
      Fail(absl::StrFormat("%d numbers for %s", words.size(),
                           TypeToString(type)));
    }
    VisitDType(type.dtype(), [&](auto zero) {
      using T = decltype(zero);
      std::vector<T> numbers;
      for (const absl::string_view word : words) {
        numbers.push_back(NumberOf<T>(word));
      }
      node.constant = FromVector(numbers, type.shape(), type.device());
    });
  }

  template <typename T>
  static T NumberOf(absl::string_view word) {
    if constexpr (std::is_floating_point_v<T>) {
      if (word.substr(0, 2) == "0x") {
        using Bits =
            std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        const Bits bits = ToNumber<Bits>(word.substr(2), 16);
        T value;
        std::memcpy(&value, &bits, sizeof(value));
        return value;
      }
    }
    return ToNumber<T>(word);
  }

  // @"net.cc":88 by "main.cc":7
  void Lines(Node& node) {
    if (Take(" @")) node.op.requested_at = Location();
    if (Take(" by ")) node.op.requested_by = Location();
  }
  SourceLocation Location() {
    const std::string file = Quoted();
    Expect(":");
    const int line = ToNumber<int>(Word());
    return SourceLocation(Intern(file), line);
  }

  const absl::string_view text_;
  const std::optional<Device> device_;
  std::size_t at_ = 0;
  int nodes_ = 0;
  double bytes_ = 0;  // of all values; a sum of integers might overflow
  std::map<std::string, int, std::less<>> weights_;  // index by name
  std::map<std::string, int, std::less<>> functions_;
  Graph graph_;
};

}  // namespace

absl::StatusOr<Graph> ParseText(std::string_view text,
                                std::optional<Device> device) {
  Parser parser(absl::string_view(text.data(), text.size()), device);
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", parser.line(), " of the program: ", what));
  };
  try {
    Graph graph = parser.Parse();
    if (absl::Status s = Verify(graph); !s.ok()) return s;
    return graph;
  } catch (const ParseError& wrong) {
    return error(wrong.what);
  } catch (const Parser::Version& version) {
    return absl::UnimplementedError(
        absl::StrFormat("the program is of version %d; this library reads %d",
                        version.number, kTextVersion));
  } catch (const std::invalid_argument& wrong) {
    return error(wrong.what());
  } catch (const std::runtime_error& wrong) {
    // Memory for a constant, or a device that is not there.
    return error(wrong.what());
  }
}

}  // namespace d2l::ir
