// The functions that code compiled with -fsanitize=thread,bounds,alignment
// calls; see check.h.

#include <cstddef>
#include <cstdint>

#include "common/kernels/cuda/fake/check.h"

namespace d2l::kernels::cuda {
namespace {

void Access(char* address, std::size_t bytes, std::size_t part, bool writes,
            const void* site) {
  GridObserver* const observer = ObserverOfThread();
  if (observer == nullptr) return;
  for (std::size_t begin = 0; begin < bytes; begin += part) {
    observer->Access(address + begin, part, writes, /*atomic=*/false, site);
  }
}

// nvcc makes two accesses to a struct that is aligned to less than its size.
std::size_t PartOf(const void* address, std::size_t bytes) {
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  return a % bytes == 0 ? bytes : bytes / 2;
}

void Fault(FindingKind kind, const void* site, const void* address = nullptr) {
  GridObserver* const observer = ObserverOfThread();
  if (observer != nullptr) observer->Fault(kind, site, address);
}

}  // namespace

#define D2L_HOOK(name, bytes, writes)                      \
  void name(char* address) {                               \
    Access(address, bytes, PartOf(address, bytes), writes, \
           __builtin_return_address(0));                   \
  }
#define D2L_HOOKS(bytes)                     \
  D2L_HOOK(__tsan_read##bytes, bytes, false) \
  D2L_HOOK(__tsan_write##bytes, bytes, true)

extern "C" {
D2L_HOOKS(1)
D2L_HOOKS(2)
D2L_HOOKS(4)
D2L_HOOKS(8)
D2L_HOOKS(16)
void __tsan_read_range(char* address, std::size_t bytes) {
  Access(address, bytes, bytes, false, __builtin_return_address(0));
}
void __tsan_write_range(char* address, std::size_t bytes) {
  Access(address, bytes, bytes, true, __builtin_return_address(0));
}
void __tsan_init() { internal::instrumented = true; }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __ubsan_handle_out_of_bounds(void*, std::uintptr_t) {
  Fault(FindingKind::kOutOfBounds, __builtin_return_address(0));
  // Behind an array lie other variables of the program.
  if (ObserverOfThread() != nullptr) EndThread();
}
void __ubsan_handle_type_mismatch_v1(void*, std::uintptr_t address) {
  Fault(FindingKind::kMisaligned, __builtin_return_address(0),
        reinterpret_cast<const void*>(address));
}
}  // extern "C"

}  // namespace d2l::kernels::cuda
