// From the text of a kernel to its executable form: calls are inlined, and
// registers, immediates and variables get their places.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/ptx/kernel.h"

namespace d2l::ptx {
namespace {

std::size_t AlignUp(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

// The operands of arithmetic, the result first: t has the type, w twice its
// width, u 32 bits, and p is a predicate.
const char* ShapeOf(const std::string& name) {
  static const auto& shapes = *new std::unordered_map<std::string, const char*>{
      {"add", "ttt"},        {"sub", "ttt"},          {"mul", "ttt"},
      {"mul.hi", "ttt"},     {"mul.wide", "wtt"},     {"mad", "tttt"},
      {"mad.hi", "tttt"},    {"mad.wide", "wttw"},    {"fma", "tttt"},
      {"div", "ttt"},        {"rem", "ttt"},          {"min", "ttt"},
      {"max", "ttt"},        {"and", "ttt"},          {"or", "ttt"},
      {"xor", "ttt"},        {"not", "tt"},           {"neg", "tt"},
      {"abs", "tt"},         {"copysign", "ttt"},     {"mov", "tt"},
      {"shl", "ttu"},        {"shr", "ttu"},          {"bfe", "ttuu"},
      {"bfi", "tttuu"},      {"brev", "tt"},          {"popc", "ut"},
      {"clz", "ut"},         {"prmt", "tttt"},        {"shf.l", "tttt"},
      {"shf.r", "tttt"},     {"shf.l.clamp", "tttt"}, {"shf.r.clamp", "tttt"},
      {"rcp", "tt"},         {"sqrt", "tt"},          {"rcp.approx", "tt"},
      {"sqrt.approx", "tt"}, {"rsqrt.approx", "tt"},  {"ex2.approx", "tt"},
      {"lg2.approx", "tt"},  {"sin.approx", "tt"},    {"cos.approx", "tt"},
      {"tanh.approx", "tt"}, {"div.approx", "ttt"},   {"selp", "tttp"}};
  const auto it = shapes.find(name);
  return it == shapes.end() ? nullptr : it->second;
}

// An instruction's name in its parts.
class Words {
 public:
  explicit Words(const std::string& op) {
    for (std::size_t begin = 0; begin <= op.size();) {
      const std::size_t end = std::min(op.find('.', begin), op.size());
      words_.push_back(op.substr(begin, end - begin));
      const Type type = TypeNamed(words_.back());
      if (type != Type::kNone) types_.push_back(type);
      begin = end + 1;
    }
  }

  const std::string& operator[](std::size_t i) const { return words_.at(i); }
  bool Has(const char* word) const {
    return std::find(words_.begin() + 1, words_.end(), word) != words_.end();
  }
  // The first of these words that it has; "" if it has none.
  std::string AnyOf(std::initializer_list<const char*> words) const {
    for (const char* const word : words) {
      if (Has(word)) return word;
    }
    return "";
  }
  const std::vector<Type>& types() const { return types_; }
  Type type() const { return types_.empty() ? Type::kNone : types_.back(); }

  int Count() const { return Has("v4") ? 4 : Has("v2") ? 2 : 1; }
  Space MemorySpace() const {
    if (Has("global")) return Space::kGlobal;
    if (Has("shared") || Has("shared::cta")) return Space::kShared;
    if (Has("local")) return Space::kLocal;
    if (Has("param")) return Space::kParam;
    if (Has("const")) return Space::kConst;
    return Space::kGeneric;
  }

  // The name by which ArithmeticHandler and ShapeOf know it.
  std::string ArithmeticName() const {
    const std::string& base = words_[0];
    if (base == "mad" && IsFloat(type())) return "fma";
    if (base == "setp") return base + "." + words_.at(1);
    if (base == "shf") {
      return base + "." + words_.at(1) + (Has("clamp") ? ".clamp" : "");
    }
    if (Has("approx") || Has("full")) return base + ".approx";
    const std::string part = AnyOf({"hi", "wide"});
    return part.empty() ? base : base + "." + part;
  }

 private:
  std::vector<std::string> words_;
  std::vector<Type> types_;
};

class Lowering {
 public:
  Lowering(const Module& module, Kernel& kernel)
      : module_(module), kernel_(kernel) {
    for (const Variable& param : kernel.text.params) {
      kernel_.param_bytes = AlignUp(kernel_.param_bytes, param.align);
      kernel_.params.emplace_back(kernel_.param_bytes, param.bytes);
      params_[param.name] = kernel_.param_bytes;
      kernel_.param_bytes += param.bytes;
    }
    Frame frame;
    frame.function = &kernel.text;
    Function(frame);
    for (const auto& [instruction, label] : jumps_) {
      const auto it = labels_.find(label);
      if (it == labels_.end()) Fail("a jump to nowhere");
      kernel_.code[instruction].target = it->second;
    }
    // Shared memory whose size a launch says follows all other.
    if (!extern_constants_.empty()) {
      kernel_.shared_bytes = AlignUp(kernel_.shared_bytes, 16);
    }
    for (const std::size_t constant : extern_constants_) {
      kernel_.constants[constant].bits += kernel_.shared_bytes;
    }
    kernel_.local_bytes = AlignUp(kernel_.local_bytes, 16);
    kernel_.register_bytes = AlignUp(next_register_, 64);
  }

 private:
  using Kind = Instruction::Kind;
  struct Place {
    Space space;
    std::uint64_t at;
  };
  // A function that is being inlined, or the kernel.
  struct Frame {
    const FunctionText* function = nullptr;
    std::string prefix;  // of its labels
    std::vector<std::uint32_t> registers;
    std::map<std::string, Place> variables;
  };

  [[noreturn]] void Fail(const std::string& why) const {
    std::string where;
    if (statement_ != nullptr) {
      where = ", PTX line " + std::to_string(statement_->line) + ", " +
              statement_->op;
    }
    throw Unsupported(NameOf(kernel_) + where + ": " + why);
  }

  // ---- Places.

  std::uint32_t NewRegister(int bytes) {
    // A predicate is one word.
    const std::size_t align = bytes == 0 ? 4 : 64;
    next_register_ = AlignUp(next_register_, align);
    const std::size_t place = next_register_;
    next_register_ += bytes == 0 ? 4 : std::size_t{kLanes} * bytes;
    return static_cast<std::uint32_t>(place);
  }

  std::uint32_t Constant(int bytes, std::uint64_t bits) {
    if (bytes == 0 && bits != 0) bits = kAllLanes;
    if (bytes == 2 || bytes == 4) {
      bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
    }
    const auto [it, is_new] = constants_.try_emplace({bytes, bits}, 0);
    if (is_new) {
      it->second = NewRegister(bytes);
      kernel_.constants.push_back({it->second, bytes, bits});
    }
    return it->second;
  }

  std::uint32_t Special(const std::string& name) {
    const auto [it, is_new] = kernel_.specials.try_emplace(name, 0);
    if (is_new) it->second = NewRegister(4);
    return it->second;
  }

  // The place in shared memory of one of the module's or the kernel's
  // variables.
  std::uint64_t SharedPlace(const Variable& variable) {
    const auto [it, is_new] = shared_.try_emplace(variable.name, 0);
    if (is_new) {
      it->second = AlignUp(kernel_.shared_bytes, variable.align);
      kernel_.shared_bytes = it->second + variable.bytes;
    }
    return it->second;
  }

  // A register with the address of a variable.
  std::uint32_t AddressOf(const std::string& name, std::uint64_t offset,
                          int bytes, Space* space) {
    const auto of_frame = frame_->variables.find(name);
    if (of_frame != frame_->variables.end()) {
      *space = of_frame->second.space;
      return Constant(bytes, of_frame->second.at + offset);
    }
    const auto param = params_.find(name);
    if (param != params_.end()) {
      *space = Space::kParam;
      return Constant(bytes, param->second + offset);
    }
    for (const Variable& variable : module_.text().variables) {
      if (variable.name != name) continue;
      *space = variable.space;
      if (variable.space != Space::kShared) {
        const char* const data = module_.DataOf(name);
        return Constant(bytes, reinterpret_cast<std::uint64_t>(data) + offset);
      }
      if (!variable.is_extern) {
        return Constant(bytes, SharedPlace(variable) + offset);
      }
      extern_constants_.push_back(kernel_.constants.size());
      kernel_.constants.push_back({NewRegister(bytes), bytes, offset});
      return kernel_.constants.back().place;
    }
    Fail("an unknown name, " + name);
  }

  int BytesOf(const Operand& operand) const {
    return SizeOf(frame_->function->registers[operand.reg].second);
  }

  // A register with an operand of so many bytes; 0 for a predicate.
  std::uint32_t Source(const Operand& operand, int bytes) {
    switch (operand.kind) {
      case Operand::Kind::kRegister: {
        if (BytesOf(operand) != bytes) Fail("a register of another width");
        const std::uint32_t place = frame_->registers[operand.reg];
        if (!operand.negated) return place;
        Instruction i = NewInstruction();
        i.in[0] = place;
        i.out[0] = NewRegister(0);
        Emit(i, ArithmeticHandler("not", Type::kPred));
        return i.out[0];
      }
      case Operand::Kind::kImmediate:
        return Constant(bytes, operand.bits);
      case Operand::Kind::kSpecial: {
        if (bytes == 4) return Special(operand.name);
        Instruction i = NewInstruction();
        i.in[0] = Special(operand.name);
        i.in_size = 4;
        i.out[0] = NewRegister(bytes);
        i.out_size = static_cast<std::uint8_t>(bytes);
        Emit(i,
             ConvertHandler(bytes == 8 ? Type::kU64 : Type::kU16, Type::kU32));
        return i.out[0];
      }
      case Operand::Kind::kSymbol: {
        Space ignored;
        return AddressOf(operand.name, operand.bits, bytes, &ignored);
      }
      default:
        Fail("an operand of an unknown kind");
    }
  }

  std::uint32_t Destination(const Operand& operand, int bytes) {
    // Nobody reads the register of a sink.
    if (operand.kind == Operand::Kind::kSink) return NewRegister(bytes);
    if (operand.kind != Operand::Kind::kRegister) Fail("no register");
    if (BytesOf(operand) != bytes) Fail("a register of another width");
    return frame_->registers[operand.reg];
  }

  void SetAddress(const Operand& operand, Instruction* i) {
    if (operand.kind != Operand::Kind::kAddress) Fail("no address");
    i->immediate = static_cast<std::int64_t>(operand.bits);
    if (operand.reg >= 0) {
      i->in[0] = frame_->registers[operand.reg];
      i->wide_address = BytesOf(operand) == 8;
    } else if (operand.name.empty()) {
      i->in[0] = Constant(8, 0);
    } else {
      Space space = i->space;
      i->in[0] = AddressOf(operand.name, 0, 8, &space);
      // What a call passes as .param lies in local memory.
      if (i->space == Space::kGeneric || i->space == Space::kParam) {
        i->space = space;
      }
    }
  }

  // ---- Code.

  Instruction NewInstruction() const {
    Instruction i;
    i.statement = statement_;
    if (statement_->guard >= 0) {
      i.guard = static_cast<std::int32_t>(frame_->registers[statement_->guard]);
      i.guard_negated = statement_->guard_negated;
    }
    return i;
  }
  void Emit(Instruction i, Handler run) {
    if (run == nullptr) Fail("an unknown instruction");
    i.run = run;
    kernel_.code.push_back(i);
  }
  void Emit(Instruction i, Kind kind, Handler run = nullptr) {
    i.kind = kind;
    i.run = run;
    kernel_.code.push_back(i);
  }
  void Jump(Instruction i, const std::string& label) {
    jumps_.emplace_back(kernel_.code.size(), label);
    Emit(i, Kind::kBranch);
  }
  void Label(const std::string& label) {
    labels_[label] = static_cast<std::uint32_t>(kernel_.code.size());
  }

  void Function(Frame& frame) {
    constexpr int kMostDepth = 20;
    if (++depth_ > kMostDepth) Fail("calls too deep, or a recursion");
    Frame* const outer = std::exchange(frame_, &frame);
    const Statement* const call = statement_;
    frame.prefix = std::to_string(frames_++) + ":";
    for (const auto& [name, type] : frame.function->registers) {
      frame.registers.push_back(NewRegister(SizeOf(type)));
    }
    for (const Variable& variable : frame.function->variables) {
      if (variable.space == Space::kShared) {
        frame.variables[variable.name] = {Space::kShared,
                                          SharedPlace(variable)};
        continue;
      }
      // Blocks of a function may have variables of the same name: the arguments
      // of calls, which are used one after the other.
      const auto known = frame.variables.find(variable.name);
      if (known != frame.variables.end() && variable.bytes <= 8) continue;
      kernel_.local_bytes = AlignUp(kernel_.local_bytes,
                                    std::max<std::size_t>(8, variable.align));
      frame.variables[variable.name] = {Space::kLocal, kernel_.local_bytes};
      kernel_.local_bytes += std::max<std::size_t>(8, variable.bytes);
    }
    for (const Statement& statement : frame.function->body) {
      statement_ = &statement;
      if (statement.op.empty()) {
        Label(frame.prefix + statement.label);
      } else {
        Lower(statement);
      }
    }
    if (outer == nullptr) {
      Emit(Instruction(), Kind::kExit);
    } else {
      Label(frame.prefix + "return");
    }
    frame_ = outer;
    statement_ = call;
    --depth_;
  }

  // call (returns), name, (arguments);
  void Call(const Statement& statement) {
    std::vector<Operand> returns, arguments;
    std::string name;
    for (const Operand& operand : statement.operands) {
      if (operand.kind == Operand::Kind::kSymbol) name = operand.name;
      if (operand.kind != Operand::Kind::kArguments) continue;
      (name.empty() ? returns : arguments) = operand.parts;
    }
    if (name == "__assertfail") {
      return Emit(NewInstruction(), LaneHandler("assert"));
    }
    // An exercise's kernel prints in the check of kernels, which comes before.
    if (name == "vprintf") {
      return Emit(NewInstruction(), LaneHandler("nothing"));
    }
    const auto callee = module_.text().functions.find(name);
    if (callee == module_.text().functions.end()) Fail("no function " + name);
    std::string after;
    if (statement.guard >= 0) {
      Instruction skip = NewInstruction();
      skip.guard_negated = !skip.guard_negated;
      after = frame_->prefix + "call" + std::to_string(kernel_.code.size());
      Jump(skip, after);
    }
    Frame frame;
    frame.function = &callee->second;
    const auto bind = [&](const std::vector<Operand>& given,
                          const std::vector<Variable>& names) {
      if (given.size() != names.size()) Fail("arguments that do not fit");
      for (std::size_t i = 0; i < given.size(); ++i) {
        frame.variables[names[i].name] = frame_->variables.at(given[i].name);
      }
    };
    bind(returns, callee->second.returns);
    bind(arguments, callee->second.params);
    Function(frame);
    if (!after.empty()) Label(after);
  }

  void Memory(const Words& words, const Statement& statement) {
    const bool is_load = words[0] == "ld" || words[0] == "ldu";
    const Type type = words.type();
    Instruction i = NewInstruction();
    i.space = words.MemorySpace();
    i.element_bytes = static_cast<std::uint8_t>(SizeOf(type));
    i.count = static_cast<std::uint8_t>(words.Count());
    const Operand& values = statement.operands.at(is_load ? 0 : 1);
    const std::vector<Operand> parts = values.kind == Operand::Kind::kVector
                                           ? values.parts
                                           : std::vector<Operand>{values};
    if (parts.size() != i.count) Fail("a vector of another size");
    int bytes = std::max(2, SizeOf(type));
    for (const Operand& part : parts) {
      if (part.kind == Operand::Kind::kRegister) bytes = BytesOf(part);
    }
    for (std::size_t k = 0; k < parts.size(); ++k) {
      i.out[k] =
          is_load ? Destination(parts[k], bytes) : Source(parts[k], bytes);
    }
    SetAddress(statement.operands.at(is_load ? 1 : 0), &i);
    Emit(i, is_load ? LoadHandler(type, bytes)
                    : StoreHandler(SizeOf(type), bytes));
  }

  // atom d, [a], b, c; red [a], b;
  void AtomicOperation(const Words& words, const Statement& statement) {
    const std::size_t first = words[0] == "atom" ? 1 : 0;
    const Type type = words.type();
    Instruction i = NewInstruction();
    i.space = words.MemorySpace();
    i.element_bytes = static_cast<std::uint8_t>(SizeOf(type));
    i.has_result = first == 1;
    if (i.has_result)
      i.out[0] = Destination(statement.operands.at(0), SizeOf(type));
    SetAddress(statement.operands.at(first), &i);
    for (std::size_t k = first + 1; k < statement.operands.size(); ++k) {
      i.in[k - first] = Source(statement.operands[k], SizeOf(type));
    }
    Emit(i, AtomicHandler(words.AnyOf({"add", "min", "max", "and", "or", "xor",
                                       "exch", "cas"}),
                          type));
  }

  void Convert(const Words& words, const Statement& statement) {
    if (words.types().size() != 2) Fail("not two types");
    const Type to = words.types()[0], from = words.types()[1];
    const Operand& source = statement.operands.at(1);
    Instruction i = Modified(words);
    i.to_integer = !words.AnyOf({"rni", "rzi", "rmi", "rpi"}).empty();
    // Registers may be wider than the types.
    i.out_size = static_cast<std::uint8_t>(BytesOf(statement.operands.at(0)));
    i.in_size = static_cast<std::uint8_t>(
        source.kind == Operand::Kind::kRegister ? BytesOf(source)
                                                : std::max(2, SizeOf(from)));
    i.out[0] = Destination(statement.operands[0], i.out_size);
    i.in[0] = Source(source, i.in_size);
    Emit(i, ConvertHandler(to, from));
  }

  // An instruction with the modifiers of arithmetic.
  Instruction Modified(const Words& words) const {
    Instruction i = NewInstruction();
    if (!words.AnyOf({"rz", "rzi"}).empty()) i.rounding = Rounding::kZero;
    if (!words.AnyOf({"rm", "rmi"}).empty()) i.rounding = Rounding::kDown;
    if (!words.AnyOf({"rp", "rpi"}).empty()) i.rounding = Rounding::kUp;
    i.flush = words.Has("ftz");
    i.saturate = words.Has("sat");
    return i;
  }

  // shfl.sync.mode d|p, a, b, c, members;
  void Shuffle(const Words& words, const Statement& statement) {
    const std::vector<Operand>& o = statement.operands;
    if (!words.Has("sync") || o.size() != 5) Fail("not .sync");
    Instruction i = NewInstruction();
    const bool pair = o[0].kind == Operand::Kind::kPair;
    i.out[0] = Destination(pair ? o[0].parts[0] : o[0], 4);
    i.has_result = pair;
    if (pair) i.out[1] = Destination(o[0].parts[1], 0);
    for (int k = 0; k < 4; ++k) i.in[k] = Source(o[k + 1], 4);
    Emit(i, Kind::kWarpSync,
         Known(LaneHandler("shfl." +
                           words.AnyOf({"up", "down", "bfly", "idx"}))));
  }
  // vote.sync.mode d, p, members;
  void Vote(const Words& words, const Statement& statement) {
    const std::vector<Operand>& o = statement.operands;
    if (!words.Has("sync") || o.size() != 3) Fail("not .sync");
    Instruction i = NewInstruction();
    i.out[0] = Destination(o[0], words.Has("ballot") ? 4 : 0);
    i.in[0] = Source(o[1], 0);
    i.in[3] = Source(o[2], 4);
    Emit(i, Kind::kWarpSync,
         Known(LaneHandler("vote." + words.AnyOf({"all", "any", "ballot"}))));
  }
  Handler Known(Handler handler) const {
    if (handler == nullptr) Fail("an unknown mode");
    return handler;
  }

  // mov.b64 %rd1, {%r1, %r2}, and the other way round.
  void MoveVector(const Words& words, const Statement& statement) {
    const bool packs = statement.operands[1].kind == Operand::Kind::kVector;
    const Operand& vector = statement.operands[packs ? 1 : 0];
    const Operand& whole = statement.operands[packs ? 0 : 1];
    const int bytes = SizeOf(words.type());
    const int part = bytes / static_cast<int>(vector.parts.size());
    Instruction i = NewInstruction();
    i.count = static_cast<std::uint8_t>(vector.parts.size());
    i.out_size = static_cast<std::uint8_t>(packs ? bytes : part);
    i.in_size = static_cast<std::uint8_t>(packs ? part : bytes);
    for (int k = 0; k < i.count; ++k) {
      if (packs) {
        i.in[k] = Source(vector.parts[k], part);
      } else {
        i.out[k] = Destination(vector.parts[k], part);
      }
    }
    if (packs) {
      i.out[0] = Destination(whole, bytes);
    } else {
      i.in[0] = Source(whole, bytes);
    }
    Emit(i, LaneHandler(packs ? "pack" : "unpack"));
  }

  void Barrier(const Words& words, const Statement& statement) {
    Instruction i = NewInstruction();
    if (words.Has("warp")) {
      i.in[3] = Source(statement.operands.at(0), 4);
      return Emit(i, Kind::kWarpSync, LaneHandler("nothing"));
    }
    const std::vector<Operand>& o = statement.operands;
    if (!words.Has("sync") || o.size() != 1 || o[0].bits != 0) {
      Fail("a barrier other than __syncthreads");
    }
    Emit(i, Kind::kBarrier);
  }

  // setp.lt.and.f32 p, a, b, q: the comparison, then its combination with q.
  void Compare(const Words& words, const Statement& statement) {
    const std::vector<Operand>& o = statement.operands;
    const int bytes = SizeOf(words.type());
    const std::string with = words.AnyOf({"and", "or", "xor"});
    if (o.size() != (with.empty() ? 3 : 4)) Fail("operands that do not fit");
    Instruction i = Modified(words);
    i.in[0] = Source(o[1], bytes);
    i.in[1] = Source(o[2], bytes);
    const std::uint32_t out = Destination(o[0], 0);
    i.out[0] = with.empty() ? out : NewRegister(0);
    Emit(i, ArithmeticHandler(words.ArithmeticName(), words.type()));
    if (with.empty()) return;
    Instruction combination = NewInstruction();
    combination.in[0] = i.out[0];
    combination.in[1] = Source(o[3], 0);
    combination.out[0] = out;
    Emit(combination, ArithmeticHandler(with, Type::kPred));
  }

  void Arithmetic(const Words& words, const Statement& statement) {
    const std::string name = words.ArithmeticName();
    const char* const shape = ShapeOf(name);
    if (shape == nullptr) Fail("an unknown instruction");
    if (words.Has("cc") || words.Has("NaN")) Fail("an unknown modifier");
    if (statement.operands.size() != std::strlen(shape)) {
      Fail("operands that do not fit");
    }
    Instruction i = Modified(words);
    for (std::size_t k = 0; k < statement.operands.size(); ++k) {
      const int bytes = shape[k] == 't'   ? SizeOf(words.type())
                        : shape[k] == 'w' ? 2 * SizeOf(words.type())
                        : shape[k] == 'u' ? 4
                                          : 0;
      if (k == 0) {
        i.out[0] = Destination(statement.operands[0], bytes);
      } else {
        i.in[k - 1] = Source(statement.operands[k], bytes);
      }
    }
    Emit(i, ArithmeticHandler(name, words.type()));
  }

  void Lower(const Statement& statement) {
    const Words words(statement.op);
    const std::string& base = words[0];
    const std::vector<Operand>& o = statement.operands;
    if (base == "bra") {
      Jump(NewInstruction(), frame_->prefix + o.at(0).name);
    } else if (base == "exit" || (base == "ret" && depth_ == 1)) {
      Emit(NewInstruction(), Kind::kExit);
    } else if (base == "ret") {
      Jump(NewInstruction(), frame_->prefix + "return");
    } else if (base == "call") {
      Call(statement);
    } else if (base == "bar" || base == "barrier") {
      Barrier(words, statement);
    } else if (base == "ld" || base == "ldu" || base == "st") {
      Memory(words, statement);
    } else if (base == "atom" || base == "red") {
      AtomicOperation(words, statement);
    } else if (base == "cvt") {
      Convert(words, statement);
    } else if (base == "cvta") {
      Instruction i = NewInstruction();
      i.immediate = static_cast<std::int64_t>(WindowOf(words.MemorySpace()));
      i.out[0] = Destination(o.at(0), 8);
      i.in[0] = Source(o.at(1), 8);
      Emit(i, LaneHandler(words.Has("to") ? "cvta.to" : "cvta"));
    } else if (base == "setp") {
      Compare(words, statement);
    } else if (base == "shfl") {
      Shuffle(words, statement);
    } else if (base == "vote") {
      Vote(words, statement);
    } else if (base == "activemask") {
      Instruction i = NewInstruction();
      i.out[0] = Destination(o.at(0), 4);
      Emit(i, LaneHandler(base));
    } else if (base == "mov" && (o.at(0).kind == Operand::Kind::kVector ||
                                 o.at(1).kind == Operand::Kind::kVector)) {
      MoveVector(words, statement);
    } else if (base == "membar" || base == "fence" || base == "trap") {
      Emit(NewInstruction(), LaneHandler(base));
    } else if (base == "nanosleep" || base == "prefetch") {
      Emit(NewInstruction(), LaneHandler("nothing"));
    } else {
      Arithmetic(words, statement);
    }
  }

  const Module& module_;
  Kernel& kernel_;
  Frame* frame_ = nullptr;
  const Statement* statement_ = nullptr;
  // Operands that an instruction does not have are read from place 0.
  std::size_t next_register_ = std::size_t{kLanes} * 8;
  int depth_ = 0;
  int frames_ = 0;
  std::map<std::string, std::uint64_t> params_;
  std::map<std::string, std::uint64_t> shared_;
  std::map<std::pair<int, std::uint64_t>, std::uint32_t> constants_;
  std::vector<std::size_t> extern_constants_;  // in Kernel::constants
  std::map<std::string, std::uint32_t> labels_;
  std::vector<std::pair<std::size_t, std::string>> jumps_;
};

// bazel compiles in a folder of its own.
std::string InWorkspace(std::string path) {
  const std::string folder = "/execroot/";
  const std::size_t at = path.find(folder);
  if (at != std::string::npos) {
    path.erase(0, path.find('/', at + folder.size()) + 1);
  }
  return path.compare(0, 2, "./") == 0 ? path.substr(2) : path;
}

}  // namespace

std::unique_ptr<const Kernel> Lower(const Module& module, FunctionText text) {
  auto kernel = std::make_unique<Kernel>();
  kernel->text = std::move(text);
  kernel->module = &module;
  Lowering(module, *kernel);
  return kernel;
}

Module::Module(const std::string& ptx)
    : text_(ParseModule(CutEntries(ptx, &entries_))) {
  for (const Variable& variable : text_.variables) {
    if (variable.space == Space::kShared) continue;
    auto data = std::make_unique<char[]>(variable.bytes);  // zeros
    for (std::size_t i = 0; i < variable.initial.size(); ++i) {
      std::memcpy(data.get() + i * variable.element_bytes, &variable.initial[i],
                  variable.element_bytes);
    }
    data_[variable.name] = std::move(data);
  }
}

const Kernel* Module::KernelNamed(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = kernels_.find(name);
  if (known != kernels_.end()) return known->second.get();
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return nullptr;
  ModuleText one = ParseModule(entry->second.text, entry->second.line);
  auto made = Lower(*this, std::move(one.functions.at(name)));
  return (kernels_[name] = std::move(made)).get();
}

std::vector<std::string> Module::KernelNames() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

std::string Module::Where(const Instruction& instruction) const {
  const Statement* const statement = instruction.statement;
  if (statement == nullptr) return "the kernel's end";
  std::string source;
  // Shuffles and atomics are functions of the toolkit's headers.
  for (const Statement::Place& place : {statement->source, statement->caller}) {
    const auto file = text_.files.find(place.file);
    if (file == text_.files.end()) continue;
    source =
        InWorkspace(file->second) + ":" + std::to_string(place.line) + ", ";
    if (file->second.find("/include/") == std::string::npos) break;
  }
  return source + "PTX line " + std::to_string(statement->line) + ": " +
         statement->op;
}

char* Module::DataOf(const std::string& variable) const {
  const auto it = data_.find(variable);
  return it == data_.end() ? nullptr : it->second.get();
}

const Variable* Module::VariableAt(std::uint64_t address, char** data) const {
  for (const Variable& variable : text_.variables) {
    char* const begin = DataOf(variable.name);
    const auto start = reinterpret_cast<std::uint64_t>(begin);
    if (begin == nullptr || address < start ||
        address >= start + variable.bytes) {
      continue;
    }
    *data = begin;
    return &variable;
  }
  return nullptr;
}

}  // namespace d2l::ptx
