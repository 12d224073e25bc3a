// The hint to the processor that this thread spins.

#ifndef D2L_COMMON_BASE_PAUSE_H_
#define D2L_COMMON_BASE_PAUSE_H_

namespace d2l {

// Lets the other hardware thread run and saves power; 5 to 60 ns.
inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace d2l

#endif  // D2L_COMMON_BASE_PAUSE_H_
