// Ticks: the processor's time-stamp counter, for timing short calls cheaply.
//
//   const std::int64_t begin = NowTicks();
//   …
//   const std::int64_t nanos = TickScale().ToNanos(begin);  // NowNanos then
//
// Reading it costs about half of what NowNanos does. Where the counter cannot
// be trusted (no invariant TSC, another architecture) ticks are nanoseconds,
// read with NowNanos.
//
// Thread-safe.

#ifndef D2L_COMMON_BASE_TICKS_H_
#define D2L_COMMON_BASE_TICKS_H_

#include <cstdint>

#include "common/base/timer.h"

namespace d2l {

namespace internal {
// Whether ticks are the processor's. Constant once main has begun.
extern const bool ticks_are_cycles;
}  // namespace internal

inline std::int64_t NowTicks() {
#if defined(__x86_64__)
  if (internal::ticks_are_cycles) {
    // The intrinsic's header would take a third of a second of each
    // compilation.
    return static_cast<std::int64_t>(__builtin_ia32_rdtsc());
  }
#endif
  return NowNanos();
}

// A moment on both clocks. The length of a tick is calibrated over the time
// since the process began. A conversion is less exact the further a time lies
// from the moment: by a few nanoseconds for each millisecond in a process that
// has just begun, by less later.
class TickScale {
 public:
  // The present moment.
  TickScale();

  // NowNanos() at this moment.
  std::int64_t nanos() const { return nanos_; }

  // The value of NowNanos when NowTicks was `ticks`.
  std::int64_t ToNanos(std::int64_t ticks) const {
    return nanos_ + static_cast<std::int64_t>(
                        static_cast<double>(ticks - ticks_) * nanos_per_tick_);
  }

  // Converts ticks between two moments, of which both are exact.
  static std::int64_t ToNanos(std::int64_t ticks, const TickScale& from,
                              const TickScale& to);

 private:
  std::int64_t ticks_;
  std::int64_t nanos_;
  double nanos_per_tick_;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_TICKS_H_
