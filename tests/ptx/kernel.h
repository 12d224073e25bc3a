// Kernels in executable form, and how a grid of one runs.
//
//   Module module(ptx);
//   Launch launch;
//   launch.kernel = module.KernelNamed("_Z3addPf");  // null if there is none
//   launch.block = {128, 1, 1};
//   launch.params = …;                               // as the PTX lays them
//   out RunGrid(launch);                                 // throws Fault
//
// A warp executes an instruction for its 32 lanes at once. A register is an
// array of 32 values; a predicate is a word with a bit for each lane. Blocks
// run one after the other, each warp until it waits at a barrier; the lanes of
// a warp that have diverged run from the lowest place in the code on, so that
// they come together again.
//
// Module is thread-safe; several threads may run grids at the same time. A
// Module must outlive the grids of its kernels.

#ifndef D2L_TESTS_PTX_KERNEL_H_
#define D2L_TESTS_PTX_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/ptx/module_text.h"

namespace d2l::ptx {

inline constexpr int kLanes = 32;
inline constexpr std::uint32_t kAllLanes = 0xffffffffu;

// What loses a GPU's context; `error` is a cudaError_t.
struct Fault : std::runtime_error {
  Fault(int error, const std::string& text)
      : std::runtime_error(text), error(error) {}
  int error;
};

// Generic addresses of memory that is not global.
inline constexpr std::uint64_t kSharedWindow = 0x0701000000000000;
inline constexpr std::uint64_t kLocalWindow = 0x0702000000000000;
inline constexpr std::uint64_t kWindowMask = 0xffff000000000000;
// 0 for other spaces.
std::uint64_t WindowOf(Space space);

enum class Rounding : std::uint8_t { kNearest, kZero, kDown, kUp };

struct Warp;
struct Instruction;
// Executes an instruction for the lanes of Warp::active.
using Handler = void (*)(Warp&, const Instruction&);

struct Instruction {
  enum class Kind : std::uint8_t {
    kPlain,
    kBranch,
    kExit,
    kBarrier,
    kWarpSync,  // waits for the lanes of the mask in in[3]
  };

  Kind kind = Kind::kPlain;
  Handler run = nullptr;
  // Places in the warp's registers, in bytes. A store's values are in `out`,
  // and the address of a memory access is in in[0].
  std::int32_t guard = -1;
  bool guard_negated = false;
  std::uint32_t out[4] = {};
  std::uint32_t in[4] = {};
  // Of one lane's value, for instructions that take registers of any width.
  std::uint8_t out_size = 0;
  std::uint8_t in_size = 0;
  // Of loads, stores and atomics.
  Space space = Space::kGeneric;
  std::uint8_t element_bytes = 0;
  std::uint8_t count = 1;      // of a vector's elements
  bool wide_address = true;    // 64 bits
  bool has_result = false;     // of an atomic, or a shuffle's predicate
  std::int64_t immediate = 0;  // added to an address; a window
  // Of arithmetic.
  Rounding rounding = Rounding::kNearest;
  bool to_integer = false;   // cvt.rzi.f32.f32
  bool flush = false;        // .ftz: subnormal numbers become zero
  bool saturate = false;     // .sat
  std::uint32_t target = 0;  // of a branch
  const Statement* statement = nullptr;
};

class Module;

struct Kernel {
  struct Constant {
    std::uint32_t place;
    int bytes;  // 0 for a predicate
    std::uint64_t bits;
  };
  FunctionText text;
  const Module* module = nullptr;
  std::vector<Instruction> code;
  std::vector<std::pair<std::size_t, std::size_t>> params;  // place, bytes
  std::size_t param_bytes = 0;
  std::size_t register_bytes = 0;  // of a warp
  std::vector<Constant> constants;
  std::map<std::string, std::uint32_t> specials;  // "%tid.x" to its place
  std::size_t shared_bytes = 0;
  std::size_t local_bytes = 0;  // of a thread
};

class Module {
 public:
  explicit Module(const std::string& ptx);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Null if there is none. Throws Unsupported if the interpreter lacks
  // something that the kernel needs.
  const Kernel* KernelNamed(const std::string& name);
  std::vector<std::string> KernelNames() const;
  // "softmax.cu:85, PTX line 30: ld.global.f32".
  std::string Where(const Instruction& instruction) const;

  const ModuleText& text() const { return text_; }
  // The bytes of a global or constant variable; null if there is none.
  char* DataOf(const std::string& variable) const;
  // The variable that holds the address; null if there is none.
  const Variable* VariableAt(std::uint64_t address, char** data) const;

 private:
  std::map<std::string, EntryText> entries_;
  ModuleText text_;  // without kernels
  std::map<std::string, std::unique_ptr<char[]>> data_;
  std::mutex mutex_;  // guards kernels_
  std::unordered_map<std::string, std::unique_ptr<const Kernel>> kernels_;
};

// Throws Unsupported.
std::unique_ptr<const Kernel> Lower(const Module& module, FunctionText text);

struct Dim {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

struct MemoryRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct Launch {
  const Kernel* kernel = nullptr;
  Dim grid;
  Dim block;
  std::size_t dynamic_shared = 0;
  std::vector<char> params;
  // The allocation that holds the address, which stays until the grid ends; an
  // empty range if there is none.
  std::function<MemoryRange(std::uint64_t)> find_memory;
};

// What a kernel asked of a GPU, as counted with D2L_PTX_COUNTS.
struct Counts {
  std::int64_t launches = 0;
  std::int64_t instructions = 0;  // of warps
  std::int64_t requests = 0;      // of warps, to global memory
  std::int64_t sectors = 0;       // of 32 bytes, in these requests
  std::int64_t shared_requests = 0;
  std::int64_t conflicts = 0;  // passes beyond each shared request's first
  std::int64_t atomics = 0;    // of lanes
};

// The last write of a word of shared memory, and the last reads of two threads.
struct SharedWord {
  struct Use {
    std::uint32_t time = 0;   // of the block
    std::uint32_t syncs = 0;  // of the warp
    std::uint16_t thread = 0;
    std::uint8_t bytes = 0;  // a bit for each
    bool atomic = false;
    std::uint32_t place = 0;  // in the code
  };
  Use write;
  Use read;
  Use read_before;  // by another thread than `read`
};

struct Block {
  const Launch* launch = nullptr;
  unsigned index[3] = {};
  std::vector<char> shared;
  std::vector<char> written;  // by byte of shared memory
  std::vector<SharedWord> uses;
  std::uint32_t time = 0;  // counts what orders all threads
  std::vector<Warp> warps;
  // What each instruction last accessed in global memory.
  std::vector<MemoryRange> last_range;
  Counts counts;
};

struct Warp {
  // Lanes that are at the same place.
  struct Group {
    std::uint32_t place;
    std::uint32_t lanes;
  };
  Block* block = nullptr;
  unsigned number = 0;
  char* registers = nullptr;
  char* local = nullptr;
  std::uint32_t active = 0;  // the lanes that execute the instruction
  std::uint32_t alive = 0;   // those that have not ended
  std::vector<Group> ready;
  std::vector<Group> at_barrier;
  std::vector<Group> at_sync;  // wait for other lanes of the warp
  std::uint32_t syncs = 0;     // counts .sync instructions
};

// Throws Fault, and Unsupported. Other findings are reported: report.h.
void RunGrid(const Launch& launch);

// "SoftmaxKernel<float, true>".
std::string NameOf(const Kernel& kernel);
// "kernel …, block (0, 0, 0) of (1, 1, 1), thread 3 of (64, 1, 1)".
std::string ThreadOf(const Warp& warp, int lane);
// Also reports it.
[[noreturn]] void ThrowFault(int error, const std::string& what,
                             const Warp& warp, const Instruction& instruction,
                             int lane);

// ---- Handlers; null if there is none.

// name: "add", "mul.hi", "setp.lt". Operands are in[0], in[1], in[2]; the
// result is out[0].
Handler ArithmeticHandler(const std::string& name, Type type);
Handler ConvertHandler(Type to, Type from);
// Between memory of a type and registers of so many bytes.
Handler LoadHandler(Type type, int register_bytes);
Handler StoreHandler(int bytes, int register_bytes);
// name: "add", "cas", …
Handler AtomicHandler(const std::string& name, Type type);
// Of instructions that are no arithmetic: "shfl.up", "vote.any", "pack", …
Handler LaneHandler(const std::string& name);

}  // namespace d2l::ptx

#endif  // D2L_TESTS_PTX_KERNEL_H_
