#include "common/base/ticks.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace d2l {
namespace internal {
namespace {

// Whether the counter's rate is constant, whatever the cores' frequencies.
bool HasInvariantCounter() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & (1u << 8)) != 0;
#else
  return false;
#endif
}

}  // namespace

const bool ticks_are_cycles = HasInvariantCounter();

}  // namespace internal

namespace {

struct Moment {
  std::int64_t ticks;
  std::int64_t nanos;
};

// Returns the quickest of several readings: it was interrupted least.
Moment Now() {
  Moment best = {};
  std::int64_t shortest = -1;
  for (int i = 0; i < 5; ++i) {
    const std::int64_t before = NowTicks();
    const std::int64_t nanos = NowNanos();
    const std::int64_t after = NowTicks();
    if (shortest >= 0 && after - before >= shortest) continue;
    shortest = after - before;
    best = {before + (after - before) / 2, nanos};
  }
  return best;
}

const Moment process_start = Now();

}  // namespace

TickScale::TickScale() {
  const Moment now = Now();
  ticks_ = now.ticks;
  nanos_ = now.nanos;
  const std::int64_t ticks = ticks_ - process_start.ticks;
  nanos_per_tick_ = ticks > 0
                        ? static_cast<double>(nanos_ - process_start.nanos) /
                              static_cast<double>(ticks)
                        : 1;
}

std::int64_t TickScale::ToNanos(std::int64_t ticks, const TickScale& from,
                                const TickScale& to) {
  if (ticks <= from.ticks_ || to.ticks_ <= from.ticks_) {
    return from.ToNanos(ticks);
  }
  if (ticks >= to.ticks_) return to.ToNanos(ticks);
  const double part = static_cast<double>(ticks - from.ticks_) /
                      static_cast<double>(to.ticks_ - from.ticks_);
  return from.nanos_ + static_cast<std::int64_t>(
                           part * static_cast<double>(to.nanos_ - from.nanos_));
}

}  // namespace d2l
