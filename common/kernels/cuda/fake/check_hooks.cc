// What code compiled with -fsanitize=thread,bounds,alignment calls; see
// check.h.

#include <cstddef>
#include <cstdint>

#include "common/kernels/cuda/fake/check.h"

using d2l::kernels::cuda::internal::OnAccess;

// nvcc takes two accesses for a struct that is aligned to less than its size.
#define D2L_HOOK(name, bytes, writes)                               \
  void name(void* address) {                                        \
    const void* const site = __builtin_return_address(0);           \
    char* const begin = static_cast<char*>(address);                \
    if (reinterpret_cast<std::uintptr_t>(address) % (bytes) == 0) { \
      OnAccess(begin, bytes, writes, site);                         \
    } else {                                                        \
      OnAccess(begin, (bytes) / 2, writes, site);                   \
      OnAccess(begin + (bytes) / 2, (bytes) / 2, writes, site);     \
    }                                                               \
  }
#define D2L_HOOKS(bytes)                               \
  D2L_HOOK(__tsan_read##bytes, bytes, false)           \
  D2L_HOOK(__tsan_write##bytes, bytes, true)           \
  D2L_HOOK(__tsan_unaligned_read##bytes, bytes, false) \
  D2L_HOOK(__tsan_unaligned_write##bytes, bytes, true)
// What host functions in the same files do with reference counts.
#define D2L_ATOMIC(bits, T)                                        \
  T __tsan_atomic##bits##_load(const volatile T* x, int) {         \
    return __atomic_load_n(x, __ATOMIC_SEQ_CST);                   \
  }                                                                \
  void __tsan_atomic##bits##_store(volatile T* x, T value, int) {  \
    __atomic_store_n(x, value, __ATOMIC_SEQ_CST);                  \
  }                                                                \
  T __tsan_atomic##bits##_exchange(volatile T* x, T value, int) {  \
    return __atomic_exchange_n(x, value, __ATOMIC_SEQ_CST);        \
  }                                                                \
  T __tsan_atomic##bits##_fetch_add(volatile T* x, T value, int) { \
    return __atomic_fetch_add(x, value, __ATOMIC_SEQ_CST);         \
  }                                                                \
  T __tsan_atomic##bits##_fetch_sub(volatile T* x, T value, int) { \
    return __atomic_fetch_sub(x, value, __ATOMIC_SEQ_CST);         \
  }

extern "C" {
D2L_HOOKS(1)
D2L_HOOKS(2)
D2L_HOOKS(4)
D2L_HOOKS(8)
D2L_HOOKS(16)
void __tsan_read_range(void* address, std::size_t bytes) {
  OnAccess(address, bytes, false, __builtin_return_address(0));
}
void __tsan_write_range(void* address, std::size_t bytes) {
  OnAccess(address, bytes, true, __builtin_return_address(0));
}
D2L_ATOMIC(8, std::uint8_t)
D2L_ATOMIC(32, std::uint32_t)
D2L_ATOMIC(64, std::uint64_t)
void __tsan_init() { d2l::kernels::cuda::internal::FoundInstrumentation(); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __ubsan_handle_out_of_bounds(void*, std::uintptr_t) {
  d2l::kernels::cuda::internal::OnIndexOutOfBounds(__builtin_return_address(0));
}
void __ubsan_handle_type_mismatch_v1(void*, std::uintptr_t address) {
  d2l::kernels::cuda::internal::OnMisaligned(
      reinterpret_cast<const void*>(address), __builtin_return_address(0));
}
}  // extern "C"
