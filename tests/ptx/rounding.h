// The arithmetic of PTX's floating-point numbers beyond C++'s: NaN, rounding,
// and the modifiers .ftz and .sat.

#ifndef D2L_TESTS_PTX_ROUNDING_H_
#define D2L_TESTS_PTX_ROUNDING_H_

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/ptx/kernel.h"

namespace d2l::ptx {

// A result of float is the canonical NaN; one of double keeps the payload.
inline float Canonical(float x) {
  return x != x ? __builtin_bit_cast(float, 0x7fffffffu) : x;
}
inline double Canonical(double x) { return x; }

// .ftz, which exists for float only.
inline float Flush(float x) {
  const bool subnormal = std::fabs(x) < std::numeric_limits<float>::min();
  return subnormal ? std::copysign(0.0f, x) : x;
}
inline double Flush(double x) { return x; }

// .sat: to 0 … 1, NaN to 0.
template <typename T>
T Saturate(T x) {
  return x > 0 ? std::fmin(x, T{1}) : T{0};
}

// While it lives, this thread's floating-point operations round in a direction.
// The compiler does not know that they depend on it: have them in a function of
// D2L_PTX_OPAQUE.
class ScopedRounding {
 public:
  explicit ScopedRounding(Rounding rounding) {
    constexpr int kDirections[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                                   FE_UPWARD};
    std::fesetround(kDirections[static_cast<int>(rounding)]);
  }
  ~ScopedRounding() { std::fesetround(FE_TONEAREST); }
  ScopedRounding(const ScopedRounding&) = delete;
  ScopedRounding& operator=(const ScopedRounding&) = delete;
};
#define D2L_PTX_OPAQUE [[gnu::noipa]]

}  // namespace d2l::ptx

#endif  // D2L_TESTS_PTX_ROUNDING_H_
