// The element-wise functions, each written once for every back end.
//
//   Add()(1.f, 2.f);   // 3.f
//   Less()(1.f, 2.f);  // std::uint8_t{1}
//   ConvertTo<std::uint8_t>()(300.f);  // 255, but 44 of the integer 300
//
// A functor takes the element type, of which both operands are. Integers wrap
// around on overflow, as they do in PyTorch; floating-point numbers follow IEEE
// 754. Nothing throws or traps: the caller checks integer divisors for zero.
// Pure functions, written without branches where a compiler has to vectorise
// them.

#ifndef D2L_COMMON_KERNELS_FUNCTORS_H_
#define D2L_COMMON_KERNELS_FUNCTORS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/kernels/host_device.h"
#include "common/kernels/math.h"

namespace d2l::kernels {

namespace internal {

// The type in which to compute on T so that overflow is defined.
template <typename T, bool = std::is_integral_v<T>>
struct Wrapping {
  using type = T;
};
template <typename T>
struct Wrapping<T, true> {
  using type = std::make_unsigned_t<T>;
};
template <typename T>
using WrappingT = typename Wrapping<T>::type;

}  // namespace internal

// The unsigned integer of T's size, for functors that only move elements.
template <typename T>
using BitsOf = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;

// ---- Of one operand.

struct Same {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return a;
  }
};

struct Negative {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(internal::WrappingT<T>{0} -
                            static_cast<internal::WrappingT<T>>(a));
    } else {
      return -a;
    }
  }
};

// The smallest integer gives itself.
struct Abs {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      return a < 0 ? Negative()(a) : a;
    } else {
      return std::fabs(a);
    }
  }
};

// NaN gives NaN.
struct Relu {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return a < T{0} ? T{0} : a;
  }
};

struct Exp {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return math::Exp(a);
  }
};

struct Log {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return math::Log(a);
  }
};

struct Sqrt {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return math::Sqrt(a);
  }
};

struct Tanh {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return math::Tanh(a);
  }
};

struct Sigmoid {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return math::Sigmoid(a);
  }
};

struct Ndtr {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return math::Ndtr(a);
  }
};

struct Gelu {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return math::Gelu(a);
  }
};

// Converts as static_cast does, so integers wrap around; but floating-point
// numbers beyond an integer type's range become the nearest in it, and NaN 0.
template <typename To>
struct ConvertTo {
  template <typename From>
  D2L_HOST_DEVICE To operator()(From a) const {
    if constexpr (std::is_same_v<To, std::uint8_t> &&
                  std::is_floating_point_v<From>) {
      constexpr From kMax = std::numeric_limits<std::uint8_t>::max();
      // The first comparison is false for NaN.
      const From bounded = a > From{0} ? (a < kMax ? a : kMax) : From{0};
      return static_cast<std::uint8_t>(static_cast<std::int32_t>(bounded));
    } else if constexpr (std::is_same_v<To, std::int64_t> &&
                         std::is_floating_point_v<From>) {
      constexpr From kEnd = From(0x1p63);  // the first number beyond
      const From bounded = a >= -kEnd && a < kEnd ? a : From{0};
      const std::int64_t inside = static_cast<std::int64_t>(bounded);
      const std::int64_t low =
          a < -kEnd ? std::numeric_limits<std::int64_t>::min() : inside;
      return a >= kEnd ? std::numeric_limits<std::int64_t>::max() : low;
    } else {
      return static_cast<To>(a);
    }
  }
};

// ---- Of two operands.

struct Add {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a, T b) const {
    using W = internal::WrappingT<T>;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};

struct Subtract {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a, T b) const {
    using W = internal::WrappingT<T>;
    return static_cast<T>(static_cast<W>(a) - static_cast<W>(b));
  }
};

struct Multiply {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a, T b) const {
    using W = internal::WrappingT<T>;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};

struct Square {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return Multiply()(a, a);
  }
};

struct Cube {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return Multiply()(Square()(a), a);
  }
};

// The power of 1/2: the square root, but -0 and minus infinity give pow()'s
// results.
struct PowerOfHalf {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    return a == -kInfinity ? kInfinity : math::Sqrt(a + T{0});
  }
};

struct Reciprocal {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    return T{1} / a;
  }
};

// True division; integers give float.
struct Divide {
  template <typename T>
  D2L_HOST_DEVICE auto operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<float>(a) / static_cast<float>(b);
    } else {
      return a / b;
    }
  }
};

// Rounds down, so that a - b * result has the sign of b (Python's //). An
// integer b must not be 0; if it is, the result is 0.
struct FloorDivide {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, std::uint8_t>) {
      // Two bytes' quotient is never so close below an integer that float
      // would round it up to it; vectors cannot divide integers.
      const float divisor = b == 0 ? 1.f : static_cast<float>(b);
      const int quotient = static_cast<int>(static_cast<float>(a) / divisor);
      return static_cast<T>(b == 0 ? 0 : quotient);
    } else if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;
      if (b == -1) return Negative()(a);  // the smallest integer's would trap
      const T quotient = a / b;
      const bool down = (a % b != 0) & ((a < 0) != (b < 0));
      return quotient - (down ? 1 : 0);
    } else {
      const T ratio = a / b;
      const T floor = std::floor(ratio);
      // The exact quotient may lie below the integer to which the ratio was
      // rounded: then the exact remainder has the wrong sign. An infinite a has
      // no remainder and gives NaN. (0 * b would not be 0 for an infinite b.)
      const T rest = floor == T{0} ? a : math::Fma(-floor, b, a);
      const bool wrong = b < T{0} ? rest > T{0} : rest < T{0};
      const T down = wrong ? floor - T{1} : floor;
      const T result = rest == rest ? down : rest;
      return b == T{0} ? ratio : result;
    }
  }
};

// An integer b must not be negative; if it is, the result is 0.
struct Power {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b < 0) return 0;
      T result = 1;
      for (;;) {
        if ((b & 1) != 0) result = Multiply()(result, a);
        b = static_cast<T>(b >> 1);
        if (b == 0) return result;
        a = Multiply()(a, a);
      }
    } else {
      return std::pow(a, b);
    }
  }
};

// An exponent for all elements keeps double precision, as PyTorch's does.
struct PowerOfFloat {
  D2L_HOST_DEVICE float operator()(float a, double b) const {
    return static_cast<float>(std::pow(static_cast<double>(a), b));
  }
};

// NaN if either operand is NaN.
struct Maximum {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a, T b) const {
    const T larger = a > b ? a : b;  // b if either is NaN
    return a == a ? larger : a;
  }
};

struct Minimum {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a, T b) const {
    const T smaller = a < b ? a : b;
    return a == a ? smaller : a;
  }
};

// The comparisons: 1 or 0.

struct Equal {
  template <typename T>
  D2L_HOST_DEVICE std::uint8_t operator()(T a, T b) const {
    return a == b ? 1 : 0;
  }
};

struct NotEqual {
  template <typename T>
  D2L_HOST_DEVICE std::uint8_t operator()(T a, T b) const {
    return a != b ? 1 : 0;
  }
};

struct Less {
  template <typename T>
  D2L_HOST_DEVICE std::uint8_t operator()(T a, T b) const {
    return a < b ? 1 : 0;
  }
};

struct LessEqual {
  template <typename T>
  D2L_HOST_DEVICE std::uint8_t operator()(T a, T b) const {
    return a <= b ? 1 : 0;
  }
};

struct Greater {
  template <typename T>
  D2L_HOST_DEVICE std::uint8_t operator()(T a, T b) const {
    return a > b ? 1 : 0;
  }
};

struct GreaterEqual {
  template <typename T>
  D2L_HOST_DEVICE std::uint8_t operator()(T a, T b) const {
    return a >= b ? 1 : 0;
  }
};

// The gradients of Relu, Tanh and Sigmoid, computed from the result's gradient,
// dy, and the result, y. Where y is NaN, Relu's is dy.

struct ReluGradient {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T dy, T y) const {
    return y <= T{0} ? T{0} : dy;
  }
};

struct TanhGradient {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T dy, T y) const {
    return Multiply()(dy, Subtract()(T{1}, Square()(y)));
  }
};

struct SigmoidGradient {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T dy, T y) const {
    return Multiply()(dy, Multiply()(Subtract()(T{1}, y), y));
  }
};

// ---- Of three.

struct Select {
  template <typename T>
  D2L_HOST_DEVICE T operator()(std::uint8_t condition, T a, T b) const {
    return condition != 0 ? a : b;
  }
};

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_FUNCTORS_H_
