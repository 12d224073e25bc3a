// The text of a PTX module, as nvcc writes it, in parts.
//
//   ModuleText text = ParseModule(ptx);
//   const FunctionText& kernel = text.functions.at("_Z3addPf");
//   for (const Statement& s : kernel.body) std::cout << s.op << "\n";
//
// ParseModule throws Unsupported where the text has something that it does not
// know. Pure functions; thread-safe.

#ifndef D2L_TESTS_PTX_MODULE_TEXT_H_
#define D2L_TESTS_PTX_MODULE_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace d2l::ptx {

// The interpreter lacks something that the PTX needs.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Type : std::uint8_t {
  kNone,
  kPred,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kB8,
  kB16,
  kB32,
  kB64,
  kF32,
  kF64,
};

// "u32" without its dot; kNone for other words.
Type TypeNamed(const std::string& name);
// The bytes of one lane's value; 0 for predicates.
int SizeOf(Type type);
bool IsFloat(Type type);

enum class Space : std::uint8_t {
  kGeneric,
  kGlobal,
  kShared,
  kLocal,
  kParam,
  kConst
};

struct Operand {
  enum class Kind : std::uint8_t {
    kRegister,
    kSpecial,    // %tid.x
    kImmediate,  // 1, 0f3F800000
    kAddress,    // [%rd1+4], [name]
    kVector,     // {%f1, %f2}
    kPair,       // %r1|%p1
    kArguments,  // (param0)
    kSymbol,     // the name of a variable, a label or a function
    kSink,       // _
  };
  Kind kind = Kind::kSymbol;
  bool negated = false;        // !%p1
  int reg = -1;                // in FunctionText::registers; also an address's
  std::uint64_t bits = 0;      // of an immediate; the offset of an address
  std::string name;            // of a symbol; also an address's, if reg < 0
  std::vector<Operand> parts;  // of a vector, a pair, and arguments
};

struct Statement {
  std::string op;     // whole, as "ld.global.f32"; empty for a label
  std::string label;  // of a label
  int guard = -1;     // @%p1: a register, or -1
  bool guard_negated = false;
  std::vector<Operand> operands;
  int line = 0;  // of the PTX
  // Of the CUDA source, from -lineinfo.
  struct Place {
    int file = 0;
    int line = 0;
    int column = 0;
  };
  Place source;
  Place caller;  // in the file into which the source is inlined, or source
};

struct Variable {
  std::string name;
  Space space = Space::kParam;
  std::size_t bytes = 0;
  std::size_t align = 1;
  bool is_extern = false;  // shared memory whose size a launch says
  std::size_t element_bytes = 1;
  std::vector<std::uint64_t> initial;  // a value for each element
};

struct FunctionText {
  std::string name;
  std::vector<Variable> params;
  std::vector<Variable> returns;
  std::vector<std::pair<std::string, Type>> registers;
  std::vector<Variable> variables;  // local, shared, and arguments of calls
  std::vector<Statement> body;
  int max_threads = 0;  // __launch_bounds__; 0 if there are none
};

struct ModuleText {
  std::map<int, std::string> files;
  std::vector<Variable> variables;
  std::map<std::string, FunctionText> functions;  // those with a body
};

// `first_line` is the number of the text's first line, for messages.
ModuleText ParseModule(const std::string& ptx, int first_line = 1);

// A kernel's text, from ".entry" to its last brace, and its first line.
struct EntryText {
  std::string text;
  int line = 0;
};
// Cuts the kernels out of a module's text without parsing them, since a program
// runs few of them; returns the rest.
std::string CutEntries(const std::string& ptx,
                       std::map<std::string, EntryText>* entries);

}  // namespace d2l::ptx

#endif  // D2L_TESTS_PTX_MODULE_TEXT_H_
