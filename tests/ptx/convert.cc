// cvt: conversions between types, with their rounding.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tests/ptx/kernel.h"
#include "tests/ptx/lanes.h"
#include "tests/ptx/rounding.h"

namespace d2l::ptx {
namespace {

template <typename T>
T RoundToInteger(T x, Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return std::trunc(x);
    case Rounding::kDown:
      return std::floor(x);
    case Rounding::kUp:
      return std::ceil(x);
    default:
      return std::nearbyint(x);
  }
}

// Out of range: the nearest integer. NaN: 0, or the lowest integer if one of
// the types has 64 bits.
template <typename To, typename From>
To ToInteger(From x, Rounding rounding) {
  using Limits = std::numeric_limits<To>;
  if (x != x) {
    if (sizeof(From) < 8 && sizeof(To) < 8) return 0;
    return static_cast<To>(std::uint64_t{1} << (8 * sizeof(To) - 1));
  }
  x = RoundToInteger(x, rounding);
  if (x >= std::ldexp(From{1}, Limits::digits)) return Limits::max();
  if (x < static_cast<From>(Limits::min())) return Limits::min();
  return static_cast<To>(x);
}

// Rounds as the thread does: see ScopedRounding.
template <typename To, typename From>
D2L_PTX_OPAQUE To Cast(From x) {
  return static_cast<To>(x);
}

template <typename To, typename From>
To Converted(From x, const Instruction& i) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_floating_point_v<From>) {
    if (i.flush) x = Flush(x);
  }
  if constexpr (!std::is_integral_v<To>) {
    const ScopedRounding rounding(i.to_integer ? Rounding::kNearest
                                               : i.rounding);
    if constexpr (std::is_floating_point_v<From>) {
      if (i.to_integer) x = RoundToInteger(x, i.rounding);
    }
    To made = Canonical(Cast<To, From>(x));
    if (i.flush) made = Flush(made);
    return i.saturate ? Saturate(made) : made;
  } else if constexpr (std::is_floating_point_v<From>) {
    return ToInteger<To>(x, i.rounding);
  } else {
    const __int128 wide = x;
    if (i.saturate && wide < Limits::min()) return Limits::min();
    if (i.saturate && wide > Limits::max()) return Limits::max();
    return static_cast<To>(x);
  }
}

// A register that is wider than the type: the operand is its lower part, and
// the result is extended.
template <typename To, typename From>
void Convert(Warp& warp, const Instruction& i) {
  constexpr bool kIntegers = std::is_integral_v<To> && std::is_integral_v<From>;
  const bool as_wide = i.out_size == sizeof(To) && i.in_size == sizeof(From);
  if (kIntegers && as_wide && !i.saturate) {
    const From* const from = Register<From>(warp, i.in[0]);
    return WriteLanes(warp, Register<To>(warp, i.out[0]),
                      [=](int l) { return static_cast<To>(from[l]); });
  }
  ForLanes(warp.active, [&](int l) {
    From x;
    std::memcpy(&x, warp.registers + i.in[0] + l * i.in_size, sizeof(x));
    const To made = Converted<To>(x, i);
    char* const to = warp.registers + i.out[0] + l * i.out_size;
    if constexpr (std::is_integral_v<To>) {
      const auto extended = static_cast<std::int64_t>(made);
      std::memcpy(to, &extended, i.out_size);
    } else {
      std::memcpy(to, &made, sizeof(made));
    }
  });
}

template <typename From>
Handler ConvertFrom(Type to) {
  switch (to) {
    case Type::kU8:
      return Convert<std::uint8_t, From>;
    case Type::kS8:
      return Convert<std::int8_t, From>;
    case Type::kU16:
      return Convert<std::uint16_t, From>;
    case Type::kS16:
      return Convert<std::int16_t, From>;
    case Type::kU32:
      return Convert<std::uint32_t, From>;
    case Type::kS32:
      return Convert<std::int32_t, From>;
    case Type::kU64:
      return Convert<std::uint64_t, From>;
    case Type::kS64:
      return Convert<std::int64_t, From>;
    case Type::kF32:
      return Convert<float, From>;
    case Type::kF64:
      return Convert<double, From>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler ConvertHandler(Type to, Type from) {
  switch (from) {
    case Type::kU8:
      return ConvertFrom<std::uint8_t>(to);
    case Type::kS8:
      return ConvertFrom<std::int8_t>(to);
    case Type::kU16:
      return ConvertFrom<std::uint16_t>(to);
    case Type::kS16:
      return ConvertFrom<std::int16_t>(to);
    case Type::kU32:
      return ConvertFrom<std::uint32_t>(to);
    case Type::kS32:
      return ConvertFrom<std::int32_t>(to);
    case Type::kU64:
      return ConvertFrom<std::uint64_t>(to);
    case Type::kS64:
      return ConvertFrom<std::int64_t>(to);
    case Type::kF32:
      return ConvertFrom<float>(to);
    case Type::kF64:
      return ConvertFrom<double>(to);
    default:
      return nullptr;
  }
}

}  // namespace d2l::ptx
