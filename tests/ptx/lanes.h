// For handlers: a warp's registers, and loops over its lanes.

#ifndef D2L_TESTS_PTX_LANES_H_
#define D2L_TESTS_PTX_LANES_H_

#include <cstdint>
#include <cstring>

#include "tests/ptx/kernel.h"

namespace d2l::ptx {

// The 32 values of a register.
template <typename T>
T* Register(const Warp& warp, std::uint32_t place) {
  return reinterpret_cast<T*>(warp.registers + place);
}
inline std::uint32_t& Predicate(const Warp& warp, std::uint32_t place) {
  return *Register<std::uint32_t>(warp, place);
}
// Writes the bits of the lanes that are active.
inline void SetPredicate(const Warp& warp, std::uint32_t place,
                         std::uint32_t bits) {
  std::uint32_t& to = Predicate(warp, place);
  to = (to & ~warp.active) | (bits & warp.active);
}

template <typename F>
void ForLanes(std::uint32_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(__builtin_ctz(lanes));
}

// to[lane] = value(lane) for the active lanes. value has no side effects: it is
// also called for others, so that the loop can be vectorised.
template <typename T, typename F>
void WriteLanes(const Warp& warp, T* to, F value) {
  const std::uint32_t lanes = warp.active;
  if (lanes == kAllLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) to[lane] = value(lane);
    return;
  }
#pragma GCC ivdep
  for (int lane = 0; lane < kLanes; ++lane) {
    const T made = value(lane);
    to[lane] = (lanes >> lane & 1) != 0 ? made : to[lane];
  }
}

}  // namespace d2l::ptx

#endif  // D2L_TESTS_PTX_LANES_H_
