// Loads, stores and atomics, with checks of each lane's address.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/ptx/kernel.h"
#include "tests/ptx/lanes.h"
#include "tests/ptx/report.h"
#include "tests/ptx/rounding.h"

namespace d2l::ptx {
namespace {

// cudaErrorIllegalAddress and cudaErrorMisalignedAddress.
constexpr int kIllegalAddress = 700;
constexpr int kMisalignedAddress = 716;

std::string Hexadecimal(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(number));
  return text;
}

enum class Kind { kRead, kWrite, kExchange, kAtomic };

// The addresses of the active lanes, and what they are for.
class Access {
 public:
  Access(Warp& warp, const Instruction& instruction, Kind kind)
      : warp_(warp),
        block_(*warp.block),
        instruction_(instruction),
        bytes_(std::size_t{instruction.element_bytes} * instruction.count),
        writes_(kind != Kind::kRead),
        reads_(kind == Kind::kRead || kind == Kind::kAtomic),
        atomic_(kind == Kind::kExchange || kind == Kind::kAtomic) {
    const auto* const wide = Register<std::uint64_t>(warp, instruction.in[0]);
    const auto* const narrow = Register<std::uint32_t>(warp, instruction.in[0]);
    const auto offset = static_cast<std::uint64_t>(instruction.immediate);
    const bool counts = !TheSettings().counts.empty();
    ForLanes(warp.active, [&](int lane) {
      std::uint64_t address = instruction.wide_address
                                  ? wide[lane] + offset
                                  : std::uint32_t(narrow[lane] + offset);
      if (address % bytes_ != 0) Misaligned(lane, address);
      Space space = instruction.space;
      const std::uint64_t window = address & kWindowMask;
      if (space == Space::kGeneric && window == kSharedWindow) {
        space = Space::kShared;
      } else if (space == Space::kGeneric && window == kLocalWindow) {
        space = Space::kLocal;
      }
      if (space == Space::kShared || space == Space::kLocal) {
        address &= ~kWindowMask;
      }
      data_[lane] = Locate(lane, space, address);
      if (counts) Count(lane, space, address);
    });
    if (counts) AddRequest();
  }

  char* operator[](int lane) const { return data_[lane]; }

 private:
  [[noreturn]] void Fail(int error, int lane, const std::string& what) const {
    ThrowFault(error, (writes_ ? "writes " : "reads ") + what, warp_,
               instruction_, lane);
  }
  void Misaligned(int lane, std::uint64_t address) const {
    Fail(kMisalignedAddress, lane,
         std::to_string(bytes_) + " bytes at the misaligned address " +
             Hexadecimal(address));
  }

  char* Locate(int lane, Space space, std::uint64_t address) const {
    switch (space) {
      case Space::kShared:
        RequireInside(lane, address, block_.shared.size(), "shared memory");
        CheckWritten(lane, address);
        CheckOrder(lane, address);
        return &block_.shared[address];
      case Space::kLocal: {
        const std::size_t bytes = block_.launch->kernel->local_bytes;
        RequireInside(lane, address, bytes, "the thread's local memory");
        return warp_.local + static_cast<std::size_t>(lane) * bytes + address;
      }
      case Space::kParam: {
        const std::vector<char>& params = block_.launch->params;
        RequireInside(lane, address, params.size(), "the parameters");
        return const_cast<char*>(params.data()) + address;
      }
      default:
        return LocateGlobal(lane, address);
    }
  }

  void RequireInside(int lane, std::uint64_t at, std::size_t size,
                     const char* memory) const {
    if (at <= size && at + bytes_ <= size) return;
    Fail(kIllegalAddress, lane,
         std::to_string(bytes_) + " bytes at byte " + std::to_string(at) +
             " of " + memory + ", which has " + std::to_string(size));
  }

  void CheckWritten(int lane, std::uint64_t at) const {
    const auto begin = block_.written.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(bytes_);
    if (reads_ && std::find(begin, end, 0) != end) {
      ReportAt("reads shared memory that nobody wrote", warp_, instruction_,
               lane);
    }
    if (writes_) std::fill(begin, end, 1);
  }

  // Two threads use a word, one writes it, not both are atomic, and nothing is
  // between them that orders the two.
  void CheckOrder(int lane, std::uint64_t at) const {
    SharedWord::Use now;
    now.time = block_.time;
    now.syncs = warp_.syncs;
    now.thread = static_cast<std::uint16_t>(warp_.number * kLanes +
                                            static_cast<unsigned>(lane));
    now.atomic = atomic_;
    now.place = static_cast<std::uint32_t>(&instruction_ -
                                           block_.launch->kernel->code.data());
    for (std::uint64_t word = at / 4; word * 4 < at + bytes_; ++word) {
      SharedWord& last = block_.uses[word];
      const unsigned mask = bytes_ >= 4 ? 15 : ((1u << bytes_) - 1) << at % 4;
      now.bytes = static_cast<std::uint8_t>(mask);
      RequireOrder(lane, now, last.write, "writes");
      if (!writes_) {
        if (last.read.thread != now.thread) last.read_before = last.read;
        last.read = now;
        continue;
      }
      RequireOrder(lane, now, last.read, "reads");
      RequireOrder(lane, now, last.read_before, "reads");
      last.write = now;
    }
  }

  void RequireOrder(int lane, const SharedWord::Use& now,
                    const SharedWord::Use& before, const char* what) const {
    const bool same_warp = now.thread / kLanes == before.thread / kLanes;
    if (now.time != before.time || now.thread == before.thread ||
        (same_warp && now.syncs != before.syncs) ||
        (now.bytes & before.bytes) == 0 || (now.atomic && before.atomic)) {
      return;
    }
    const Kernel& kernel = *block_.launch->kernel;
    ReportAt(std::string("a race in shared memory: ") +
                 (writes_ ? "writes" : "reads") + " what another thread " +
                 what + " at " +
                 kernel.module->Where(kernel.code[before.place]) +
                 ", and nothing orders the two; here",
             warp_, instruction_, lane);
  }

  char* LocateGlobal(int lane, std::uint64_t address) const {
    const Launch& launch = *block_.launch;
    MemoryRange& range =
        block_.last_range[&instruction_ - launch.kernel->code.data()];
    if (address < range.begin || address + bytes_ > range.end) {
      char* data = nullptr;
      const Variable* const variable =
          launch.kernel->module->VariableAt(address, &data);
      if (variable != nullptr) {
        if (writes_ && variable->space == Space::kConst) {
          Fail(kIllegalAddress, lane, "the constant " + variable->name);
        }
        const auto begin = reinterpret_cast<std::uint64_t>(data);
        range = {begin, begin + variable->bytes};
      } else {
        range = launch.find_memory(address);
      }
      if (address < range.begin || address + bytes_ > range.end) {
        Fail(kIllegalAddress, lane, Beyond(address));
      }
    }
    return reinterpret_cast<char*>(address);
  }

  // Where an address lies that is not all in an allocation.
  std::string Beyond(std::uint64_t address) const {
    const std::string what =
        std::to_string(bytes_) + " bytes at " + Hexadecimal(address);
    constexpr std::uint64_t kNear = 4096;
    for (std::uint64_t back = 0; back <= kNear; back += 16) {
      const MemoryRange range = block_.launch->find_memory(address - back);
      if (range.end == 0) continue;
      return what + ", byte " + std::to_string(address - range.begin) +
             " of an allocation of " + std::to_string(range.end - range.begin);
    }
    return what + ", in no allocation that the GPU can use";
  }

  // ---- Counting.

  void Count(int lane, Space space, std::uint64_t address) {
    if (space == Space::kShared) {
      shared_ = true;
      // A pass serves half of a warp if a lane has 8 bytes, a quarter if it
      // has 16, and one word of each bank.
      const int lanes = kLanes * 4 / std::max(4, static_cast<int>(bytes_));
      for (std::uint64_t at = address / 4; at <= (address + bytes_ - 1) / 4;
           ++at) {
        pieces_.insert({lane / lanes, at});
      }
    } else if (space != Space::kLocal && space != Space::kParam) {
      global_ = true;
      pieces_.insert({0, address / 32});
    }
  }

  void AddRequest() {
    Counts& counts = block_.counts;
    if (global_) {
      counts.requests += 1;
      counts.sectors += static_cast<std::int64_t>(pieces_.size());
    } else if (shared_) {
      counts.shared_requests += 1;
      std::map<int, std::array<int, 32>> passes;  // the words of each bank
      for (const auto& [pass, word] : pieces_) ++passes[pass][word % 32];
      for (const auto& [pass, banks] : passes) {
        counts.conflicts += *std::max_element(banks.begin(), banks.end()) - 1;
      }
    }
  }

  Warp& warp_;
  Block& block_;
  const Instruction& instruction_;
  const std::size_t bytes_;
  const bool writes_;
  const bool reads_;
  const bool atomic_;
  bool shared_ = false;
  bool global_ = false;
  std::set<std::pair<int, std::uint64_t>> pieces_;  // by pass
  char* data_[kLanes];
};

template <typename Memory, typename Reg>
void Load(Warp& warp, const Instruction& i) {
  const Access from(warp, i, Kind::kRead);
  ForLanes(warp.active, [&](int l) {
    for (int k = 0; k < i.count; ++k) {
      Memory x;
      std::memcpy(&x, from[l] + k * sizeof(x), sizeof(x));
      Register<Reg>(warp, i.out[k])[l] = static_cast<Reg>(x);
    }
  });
}

template <typename Memory, typename Reg>
void Store(Warp& warp, const Instruction& i) {
  const Access to(warp, i, Kind::kWrite);
  ForLanes(warp.active, [&](int l) {
    for (int k = 0; k < i.count; ++k) {
      const auto x = static_cast<Memory>(Register<Reg>(warp, i.out[k])[l]);
      std::memcpy(to[l] + k * sizeof(x), &x, sizeof(x));
    }
  });
}

// ---- Atomics: operations on the value in memory and the operand, in[1].

struct AddTo {
  template <typename T>
  static T Of(T old, T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return Canonical(old + x);
    } else {
      return static_cast<T>(old + x);
    }
  }
};
struct Least {
  template <typename T>
  static T Of(T old, T x) {
    return std::min(old, x);
  }
};
struct Greatest {
  template <typename T>
  static T Of(T old, T x) {
    return std::max(old, x);
  }
};
struct BitAnd {
  template <typename T>
  static T Of(T old, T x) {
    return old & x;
  }
};
struct BitOr {
  template <typename T>
  static T Of(T old, T x) {
    return old | x;
  }
};
struct BitXor {
  template <typename T>
  static T Of(T old, T x) {
    return old ^ x;
  }
};
struct Exchange {
  template <typename T>
  static T Of(T, T x) {
    return x;
  }
};

// Lanes, and streams of other devices, may be at the same address.
template <typename T, typename Operation>
void Atomic(Warp& warp, const Instruction& i) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  const Access at(
      warp, i,
      std::is_same_v<Operation, Exchange> ? Kind::kExchange : Kind::kAtomic);
  const T* const x = Register<T>(warp, i.in[1]);
  ForLanes(warp.active, [&](int l) {
    auto* const memory = reinterpret_cast<Bits*>(at[l]);
    Bits old = __atomic_load_n(memory, __ATOMIC_RELAXED);
    const auto changed = [&] {
      const T made = Operation::Of(__builtin_bit_cast(T, old), x[l]);
      return __builtin_bit_cast(Bits, made);
    };
    while (!__atomic_compare_exchange_n(memory, &old, changed(), true,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    }
    if (i.has_result) Register<Bits>(warp, i.out[0])[l] = old;
    ++warp.block->counts.atomics;
  });
}

// Writes in[2] where in[1] is.
template <typename T>
void CompareAndSwap(Warp& warp, const Instruction& i) {
  const Access at(warp, i, Kind::kAtomic);
  const T* const expected = Register<T>(warp, i.in[1]);
  const T* const made = Register<T>(warp, i.in[2]);
  ForLanes(warp.active, [&](int l) {
    T old = expected[l];
    __atomic_compare_exchange_n(reinterpret_cast<T*>(at[l]), &old, made[l],
                                false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (i.has_result) Register<T>(warp, i.out[0])[l] = old;
    ++warp.block->counts.atomics;
  });
}

template <typename T>
Handler AtomicOf(const std::string& name) {
  if (name == "add") return Atomic<T, AddTo>;
  if (name == "exch") return Atomic<T, Exchange>;
  if constexpr (std::is_integral_v<T>) {
    if (name == "min") return Atomic<T, Least>;
    if (name == "max") return Atomic<T, Greatest>;
    if (name == "and") return Atomic<T, BitAnd>;
    if (name == "or") return Atomic<T, BitOr>;
    if (name == "xor") return Atomic<T, BitXor>;
    if (name == "cas") return CompareAndSwap<T>;
  }
  return nullptr;
}

template <typename Memory>
Handler LoadTo(int register_bytes) {
  if (register_bytes == 8) return Load<Memory, std::uint64_t>;
  if (register_bytes == 4) return Load<Memory, std::uint32_t>;
  return Load<Memory, std::uint16_t>;
}
template <typename Memory>
Handler StoreFrom(int register_bytes) {
  if (register_bytes == 8) return Store<Memory, std::uint64_t>;
  if (register_bytes == 4) return Store<Memory, std::uint32_t>;
  return Store<Memory, std::uint16_t>;
}

}  // namespace

Handler LoadHandler(Type type, int register_bytes) {
  switch (type) {
    case Type::kS8:
      return LoadTo<std::int8_t>(register_bytes);
    case Type::kS16:
      return LoadTo<std::int16_t>(register_bytes);
    case Type::kS32:
      return LoadTo<std::int32_t>(register_bytes);
    default:
      break;
  }
  switch (SizeOf(type)) {
    case 1:
      return LoadTo<std::uint8_t>(register_bytes);
    case 2:
      return LoadTo<std::uint16_t>(register_bytes);
    case 4:
      return LoadTo<std::uint32_t>(register_bytes);
    default:
      return LoadTo<std::uint64_t>(register_bytes);
  }
}

Handler StoreHandler(int bytes, int register_bytes) {
  switch (bytes) {
    case 1:
      return StoreFrom<std::uint8_t>(register_bytes);
    case 2:
      return StoreFrom<std::uint16_t>(register_bytes);
    case 4:
      return StoreFrom<std::uint32_t>(register_bytes);
    default:
      return StoreFrom<std::uint64_t>(register_bytes);
  }
}

Handler AtomicHandler(const std::string& name, Type type) {
  switch (type) {
    case Type::kU32:
    case Type::kB32:
      return AtomicOf<std::uint32_t>(name);
    case Type::kS32:
      return AtomicOf<std::int32_t>(name);
    case Type::kU64:
    case Type::kB64:
      return AtomicOf<std::uint64_t>(name);
    case Type::kS64:
      return AtomicOf<std::int64_t>(name);
    case Type::kF32:
      return AtomicOf<float>(name);
    case Type::kF64:
      return AtomicOf<double>(name);
    default:
      return nullptr;
  }
}

}  // namespace d2l::ptx
