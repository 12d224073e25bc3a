#include "tests/ptx/module_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <unordered_map>

namespace d2l::ptx {
namespace {

bool IsNameStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '%' || c == '.';
}
bool IsNamePart(char c) {
  return IsNameStart(c) || std::isdigit(static_cast<unsigned char>(c));
}

struct Token {
  enum class Kind { kEnd, kName, kNumber, kString, kSign };
  Kind kind = Kind::kEnd;
  std::string text;
  std::uint64_t bits = 0;  // of a number
  std::uint64_t sign = 0;  // the bit that a minus flips; 0 for integers
};

class Parser {
 public:
  Parser(const std::string& text, int line) : text_(text), line_(line) {
    Advance();
  }

  ModuleText Module() {
    while (token_.kind != Token::Kind::kEnd) TopLevel();
    return std::move(module_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Unsupported("PTX line " + std::to_string(line_) + ": " + what +
                      ", at '" + token_.text + "'");
  }

  // ---- Tokens.

  void SkipSpace() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '/' && text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '\n' || c == ' ' || c == '\t' || c == '\r' || c == '\0') {
        line_ += c == '\n';
        ++at_;
      } else {
        return;
      }
    }
  }

  void Advance() {
    SkipSpace();
    token_ = Token();
    if (at_ >= text_.size()) return;
    const char c = text_[at_];
    std::size_t end = at_ + 1;
    if (c == '"') {
      end = std::min(text_.find('"', end), text_.size() - 1) + 1;
      token_.kind = Token::Kind::kString;
      token_.text = text_.substr(at_ + 1, end - at_ - 2);
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      end = Number();
    } else if (IsNameStart(c)) {
      // "::" is a part of a name: shared::cta.
      while (end < text_.size() &&
             (IsNamePart(text_[end]) || text_.compare(end, 2, "::") == 0 ||
              text_.compare(end - 1, 2, "::") == 0)) {
        ++end;
      }
      token_.kind = Token::Kind::kName;
      token_.text = text_.substr(at_, end - at_);
    } else {
      token_.kind = Token::Kind::kSign;
      token_.text = std::string(1, c);
    }
    at_ = end;
  }

  // 12, 0x1F, 0f3F800000, 0d3FF0000000000000. Returns its end.
  std::size_t Number() {
    token_.kind = Token::Kind::kNumber;
    const char* const start = text_.c_str() + at_;
    const char prefix = start[0] == '0' ? start[1] : '\0';
    if (prefix == 'f' || prefix == 'F' || prefix == 'd' || prefix == 'D') {
      const bool is_float = std::tolower(prefix) == 'f';
      const std::size_t digits = is_float ? 8 : 16;
      token_.bits = std::strtoull(text_.substr(at_ + 2, digits).c_str(),
                                  nullptr, /*base=*/16);
      token_.sign = std::uint64_t{1} << (is_float ? 31 : 63);
      token_.text = text_.substr(at_, digits + 2);
    } else {
      char* end = nullptr;
      token_.bits = std::strtoull(start, &end, /*base=*/0);
      if (*end == 'U') ++end;
      token_.text.assign(start, static_cast<std::size_t>(end - start));
    }
    return at_ + token_.text.size();
  }

  bool Is(const char* text) const {
    return token_.kind != Token::Kind::kString && token_.text == text;
  }
  bool Take(const char* text) {
    if (!Is(text)) return false;
    Advance();
    return true;
  }
  void Expect(const char* text) {
    if (!Take(text)) Fail(std::string("expected ") + text);
  }
  std::string TakeName() {
    if (token_.kind != Token::Kind::kName) Fail("expected a name");
    std::string name = token_.text;
    Advance();
    return name;
  }
  std::uint64_t TakeNumber() {
    const bool minus = Take("-");
    if (token_.kind != Token::Kind::kNumber) Fail("expected a number");
    const Token number = token_;
    Advance();
    if (!minus) return number.bits;
    return number.sign == 0 ? -number.bits : number.bits ^ number.sign;
  }
  void SkipPast(const char* last) {
    while (!Is(last)) {
      if (token_.kind == Token::Kind::kEnd) Fail("the text ends");
      Advance();
    }
    Advance();
  }

  // ---- Outside of functions.

  void TopLevel() {
    if (Take(".version")) {
      TakeNumber();  // "9.0" is a number and a name
      if (token_.kind == Token::Kind::kName) Advance();
    } else if (Take(".target")) {
      do TakeName();
      while (Take(","));
    } else if (Take(".address_size")) {
      TakeNumber();
    } else if (Is(".file")) {
      File();
    } else if (Take(".section")) {
      SkipPast("}");
    } else if (Take(".visible") || Take(".weak") || Take(".common")) {
      // A kernel may follow that CutEntries has cut out.
    } else if (Take(".extern")) {
      Declaration(/*is_extern=*/true);
    } else {
      Declaration(/*is_extern=*/false);
    }
  }

  void Declaration(bool is_extern) {
    if (Is(".entry") || Is(".func")) return Function();
    if (!IsVariable()) Fail("unknown outside of functions");
    module_.variables.push_back(TakeVariable(is_extern));
    Expect(";");
  }

  void File() {
    Expect(".file");
    const int number = static_cast<int>(TakeNumber());
    module_.files[number] = token_.text;
    Advance();
    while (Take(",")) TakeNumber();
  }

  // ".loc 1 82 0", or with ", function_name $L__info_string0, inlined_at 1 85
  // 3".
  void Location() {
    Expect(".loc");
    const auto take_place = [this] {
      Statement::Place place;
      for (int* part : {&place.file, &place.line, &place.column}) {
        *part = static_cast<int>(TakeNumber());
      }
      return place;
    };
    const auto key = [](const Statement::Place& place) {
      return std::array<int, 3>{place.file, place.line, place.column};
    };
    source_ = take_place();
    inlined_at_.erase(key(source_));
    while (Take(",")) {
      if (Take("inlined_at")) {
        inlined_at_[key(source_)] = take_place();
      } else {
        Expect("function_name");
        TakeName();
        if (Take("+")) TakeNumber();
      }
    }
    // A caller's own place has been named before.
    caller_ = source_;
    for (int depth = 0; depth < 8 && caller_.file == source_.file; ++depth) {
      const auto at = inlined_at_.find(key(caller_));
      if (at == inlined_at_.end()) break;
      caller_ = at->second;
    }
  }

  bool IsVariable() const {
    return Is(".global") || Is(".const") || Is(".shared") || Is(".local") ||
           Is(".param");
  }

  // ".shared .align 4 .b8 name[12]", ".param .u64 .ptr .align 1 name", also
  // with values.
  Variable TakeVariable(bool is_extern) {
    static const auto& spaces = *new std::unordered_map<std::string, Space>{
        {".global", Space::kGlobal}, {".const", Space::kConst},
        {".shared", Space::kShared}, {".local", Space::kLocal},
        {".param", Space::kParam},
    };
    Variable made;
    made.space = spaces.at(TakeName());
    made.is_extern = is_extern;
    std::size_t align = 0;
    bool of_pointer = false;
    while (token_.text[0] == '.') {
      const std::string word = TakeName().substr(1);
      if (word == "ptr") of_pointer = true;
      if (word == "align") {
        const std::uint64_t number = TakeNumber();
        if (!of_pointer) align = number;
      }
      const Type type = TypeNamed(word);
      if (type != Type::kNone) made.element_bytes = SizeOf(type);
    }
    made.name = TakeName();
    made.align = align != 0 ? align : made.element_bytes;
    made.bytes = made.element_bytes;
    while (Take("[")) {
      made.bytes *= Is("]") ? 0 : TakeNumber();
      Expect("]");
    }
    if (Take("=")) {
      const bool list = Take("{");
      do made.initial.push_back(TakeNumber());
      while (list && Take(","));
      if (list) Expect("}");
    }
    return made;
  }

  std::vector<Variable> Parameters() {
    std::vector<Variable> params;
    if (!Take("(")) return params;
    while (!Is(")")) {
      if (!Is(".param")) Fail("expected .param");
      params.push_back(TakeVariable(/*is_extern=*/false));
      if (!Take(",")) break;
    }
    Expect(")");
    return params;
  }

  void Function() {
    const bool is_entry = Is(".entry");
    Advance();
    function_ = FunctionText();
    if (!is_entry) function_.returns = Parameters();
    function_.name = TakeName();
    function_.params = Parameters();
    while (!Is("{") && !Is(";")) {
      if (Take(".maxntid")) {
        function_.max_threads = 1;
        do function_.max_threads *= static_cast<int>(TakeNumber());
        while (Take(","));
      } else if (Is(".loc")) {
        Location();
      } else {
        Advance();  // .minnctapersm 2, .noreturn: of no consequence
      }
    }
    if (Take(";")) return;
    scopes_.clear();
    Body();
    module_.functions[function_.name] = std::move(function_);
  }

  // ---- Bodies.

  void Body() {
    Expect("{");
    scopes_.emplace_back();
    while (!Is("}")) {
      if (token_.kind == Token::Kind::kEnd) Fail("the text ends in a body");
      BodyStatement();
    }
    scopes_.pop_back();
    Advance();
  }

  void BodyStatement() {
    if (Is("{")) return Body();
    if (Is(".loc")) return Location();
    if (Take(".pragma")) return SkipPast(";");
    if (Take(".reg")) return Registers();
    if (IsVariable()) {
      function_.variables.push_back(TakeVariable(/*is_extern=*/false));
      return Expect(";");
    }
    Statement made;
    made.line = line_;
    made.source = source_;
    made.caller = caller_;
    if (Take("@")) {
      made.guard_negated = Take("!");
      made.guard = FindRegister(TakeName());
      if (made.guard < 0) Fail("an unknown guard");
    }
    const std::string name = TakeName();
    if (Take(":")) {
      if (Is(".branchtargets")) Fail("a jump by a table");
      if (Is(".callprototype")) return SkipPast(";");
      made.label = name;
    } else {
      made.op = name;
      while (!Is(";")) {
        made.operands.push_back(TakeOperand());
        if (!Take(",")) break;
      }
      Expect(";");
    }
    function_.body.push_back(std::move(made));
  }

  // ".reg .b32 %r<98>;" or ".reg .b32 name;".
  void Registers() {
    const Type type = TypeNamed(TakeName().substr(1));
    if (type == Type::kNone) Fail("registers of an unknown type");
    const auto add = [&](const std::string& name) {
      scopes_.back()[name] = static_cast<int>(function_.registers.size());
      function_.registers.emplace_back(name, type);
    };
    do {
      const std::string name = TakeName();
      if (!Take("<")) {
        add(name);
        continue;
      }
      const std::uint64_t count = TakeNumber();
      for (std::uint64_t i = 0; i < count; ++i) add(name + std::to_string(i));
      Expect(">");
    } while (Take(","));
    Expect(";");
  }

  // -1 if there is none.
  int FindRegister(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto it = scope->find(name);
      if (it != scope->end()) return it->second;
    }
    return -1;
  }

  Operand List(Operand::Kind kind, const char* end) {
    Operand made;
    made.kind = kind;
    while (!Is(end)) {
      made.parts.push_back(TakeOperand());
      if (!Take(",")) break;
    }
    Expect(end);
    return made;
  }

  // A name in an address or alone: a register's, or another.
  void Resolve(const std::string& name, Operand* to) {
    to->reg = FindRegister(name);
    if (to->reg < 0) to->name = name;
  }

  Operand TakeOperand() {
    if (Take("{")) return List(Operand::Kind::kVector, "}");
    if (Take("(")) return List(Operand::Kind::kArguments, ")");
    Operand made;
    if (Take("[")) {
      made.kind = Operand::Kind::kAddress;
      if (token_.kind == Token::Kind::kName) Resolve(TakeName(), &made);
      if (Take("+") || !Is("]")) made.bits = TakeNumber();
      Expect("]");
      return made;
    }
    made.negated = Take("!");
    if (Is("-") || token_.kind == Token::Kind::kNumber) {
      made.kind = Operand::Kind::kImmediate;
      made.bits = TakeNumber();
      return made;
    }
    const std::string name = TakeName();
    Resolve(name, &made);
    made.kind = made.reg >= 0    ? Operand::Kind::kRegister
                : name == "_"    ? Operand::Kind::kSink
                : name[0] == '%' ? Operand::Kind::kSpecial
                                 : Operand::Kind::kSymbol;
    if (made.kind == Operand::Kind::kSymbol && Take("+")) {
      made.bits = TakeNumber();
    }
    if (!Take("|")) return made;
    Operand pair;
    pair.kind = Operand::Kind::kPair;
    pair.parts.push_back(std::move(made));
    pair.parts.push_back(TakeOperand());
    return pair;
  }

  const std::string& text_;
  std::size_t at_ = 0;
  int line_;
  Statement::Place source_;
  Statement::Place caller_;
  // Where a place was inlined last.
  std::map<std::array<int, 3>, Statement::Place> inlined_at_;
  Token token_;
  ModuleText module_;
  FunctionText function_;  // that is being read
  // The registers of the function's blocks, the innermost last.
  std::vector<std::unordered_map<std::string, int>> scopes_;
};

// The place after the brace that ends the block that follows.
std::size_t EndOfBlock(const std::string& ptx, std::size_t at) {
  int depth = 0;
  for (; at < ptx.size(); ++at) {
    if (ptx[at] == '{') ++depth;
    if (ptx[at] == '}' && --depth == 0) return at + 1;
  }
  throw Unsupported("PTX that ends in a kernel");
}

}  // namespace

Type TypeNamed(const std::string& name) {
  static const auto& types = *new std::unordered_map<std::string, Type>{
      {"pred", Type::kPred}, {"u8", Type::kU8},   {"u16", Type::kU16},
      {"u32", Type::kU32},   {"u64", Type::kU64}, {"s8", Type::kS8},
      {"s16", Type::kS16},   {"s32", Type::kS32}, {"s64", Type::kS64},
      {"b8", Type::kB8},     {"b16", Type::kB16}, {"b32", Type::kB32},
      {"b64", Type::kB64},   {"f32", Type::kF32}, {"f64", Type::kF64}};
  const auto it = types.find(name);
  return it == types.end() ? Type::kNone : it->second;
}

int SizeOf(Type type) {
  switch (type) {
    case Type::kNone:
    case Type::kPred:
      return 0;
    case Type::kU8:
    case Type::kS8:
    case Type::kB8:
      return 1;
    case Type::kU16:
    case Type::kS16:
    case Type::kB16:
      return 2;
    case Type::kU32:
    case Type::kS32:
    case Type::kB32:
    case Type::kF32:
      return 4;
    default:
      return 8;
  }
}

bool IsFloat(Type type) { return type == Type::kF32 || type == Type::kF64; }

ModuleText ParseModule(const std::string& ptx, int first_line) {
  return Parser(ptx, first_line).Module();
}

std::string CutEntries(const std::string& ptx,
                       std::map<std::string, EntryText>* entries) {
  constexpr char kEntry[] = ".entry ";
  std::string rest;
  std::size_t begin = 0;  // of what goes into the rest
  int line = 1;           // of `begin`
  const auto lines_to = [&](std::size_t end) {
    return static_cast<int>(
        std::count(ptx.data() + begin, ptx.data() + end, '\n'));
  };
  for (;;) {
    const std::size_t at = ptx.find(kEntry, begin);
    if (at == std::string::npos) break;
    rest.append(ptx, begin, at - begin);
    line += lines_to(at);
    begin = EndOfBlock(ptx, at);
    const std::size_t name = at + sizeof(kEntry) - 1;
    const std::size_t name_end = ptx.find_first_of("( \n\t{;", name);
    entries->emplace(ptx.substr(name, name_end - name),
                     EntryText{ptx.substr(at, begin - at), line});
    // The lines of the rest keep their numbers.
    const auto lines = std::count(ptx.data() + at, ptx.data() + begin, '\n');
    rest.append(static_cast<std::size_t>(lines), '\n');
    line += static_cast<int>(lines);
  }
  rest.append(ptx, begin, std::string::npos);
  return rest;
}

}  // namespace d2l::ptx
