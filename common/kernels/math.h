// Elementary functions without branches, each written once for every back end.
//
//   float y = Exp(x);
//   for (int i = 0; i < n; ++i) out[i] = Tanh(in[i]);  // one loop of vectors
//
// They give the same bits on every machine, in scalar and in vector code: all
// steps are exact, or correctly rounded by IEEE 754 (+, -, *, /, sqrt, and the
// explicit fused multiply-adds).
//
// A loop becomes vectors when it is compiled with -O3 for a target that has FMA
// (AVX2, AVX-512); one with Sqrt() needs -fno-math-errno, too. On a processor
// without FMA, Fma() calls the C library for every element: slow, but the same
// bits.
//
// testing/unary_cases.cc says how far each may be from the true value, in units
// in the last place, subnormal results included; math_test.cc measures it.
//
// Everything is thread-safe and cannot fail; NaN gives NaN.

#ifndef D2L_COMMON_KERNELS_MATH_H_
#define D2L_COMMON_KERNELS_MATH_H_

#include <cstdint>
#include <cstring>
#include <limits>

#include "common/kernels/host_device.h"

namespace d2l::kernels::math {

// a * b + c, rounded once.
D2L_HOST_DEVICE inline float Fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
D2L_HOST_DEVICE inline double Fma(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}

D2L_HOST_DEVICE inline float Sqrt(float x) { return __builtin_sqrtf(x); }
D2L_HOST_DEVICE inline double Sqrt(double x) { return __builtin_sqrt(x); }

namespace internal {

// Where a number's bits are, and the ranges and constants that depend on it.
template <typename T>
struct Format;

template <>
struct Format<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kBias = 127;
  // Added to a small number, rounds it to an integer: the last bits of the sum.
  static constexpr float kRound = 0x1.8p23f;
  static constexpr Bits kTwoThirds = 0x3F2AAAAB;
  // Exp() is 0 below the first and infinite above the second.
  static constexpr float kExpMin = -104.0f;
  static constexpr float kExpMax = 89.0f;
  // Tanh() is 1 above this value.
  static constexpr float kTanhMax = 10.0f;
  // Gelu() and Ndtr() are 0 below the negative of this value.
  static constexpr float kGeluMax = 14.4f;
  static constexpr float kLog2E = 0x1.715476p+0f;
  // log(2) in two parts; the first times an exponent is exact.
  static constexpr float kLog2High = 0x1.62e4p-1f;
  static constexpr float kLog2Low = 0x1.7f7d1cp-20f;
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  static constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
};

template <>
struct Format<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kRound = 0x1.8p52;
  static constexpr Bits kTwoThirds = 0x3FE5555555555555;
  static constexpr double kExpMin = -746.0;
  static constexpr double kExpMax = 710.0;
  static constexpr double kTanhMax = 20.0;
  static constexpr double kGeluMax = 38.6;
  static constexpr double kLog2E = 0x1.71547652b82fep+0;
  static constexpr double kLog2High = 0x1.62e42fefa4p-1;
  static constexpr double kLog2Low = -0x1.8432a1b0e2634p-43;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
};

template <typename T>
D2L_HOST_DEVICE inline typename Format<T>::Bits ToBits(T x) {
  typename Format<T>::Bits bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

template <typename T>
D2L_HOST_DEVICE inline T FromBits(typename Format<T>::Bits bits) {
  T x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// condition ? a : b by a mask. The compiler would compute only one of a and b,
// behind a branch, which stops it from making vectors.
template <typename T>
D2L_HOST_DEVICE inline T Select(bool condition, T a, T b) {
  using Bits = typename Format<T>::Bits;
  const Bits mask = Bits{0} - static_cast<Bits>(condition);
  return FromBits<T>((ToBits(a) & mask) | (ToBits(b) & ~mask));
}

// c0 + c1 x + c2 x^2 + ... by Horner's rule.
template <typename T, typename... Coefficients>
D2L_HOST_DEVICE inline T Polynomial(T x, T c0, Coefficients... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return c0;
  } else {
    return Fma(Polynomial(x, rest...), x, c0);
  }
}

// The polynomials' coefficients are minimax for the error relative to the
// function that they are used for, found by Remez's algorithm in 60 digits,
// each rounded before the next is found.

// (e^f - 1 - f) / f^2 for |f| <= log(2) / 2.
D2L_HOST_DEVICE inline float ExpTail(float f) {
  return Polynomial(f, 0x1p-1f, 0x1.5554a4p-3f, 0x1.555688p-5f, 0x1.122f88p-7f,
                    0x1.6b6e5ep-10f);
}
D2L_HOST_DEVICE inline double ExpTail(double f) {
  return Polynomial(f, 0x1p-1, 0x1.5555555555501p-3, 0x1.5555555553207p-5,
                    0x1.11111111288a3p-7, 0x1.6c16c17cc32b4p-10,
                    0x1.a01a011c1480ap-13, 0x1.a019ab2d295e6p-16,
                    0x1.71df5562d254fp-19, 0x1.289f8afd31072p-22,
                    0x1.ad1fe1cfd53e0p-26);
}

// log(1 + f) - f for |f| <= 1/3.
D2L_HOST_DEVICE inline float LogTail(float f) {
  const float q = Polynomial(f, -0x1p-1f, 0x1.555502p-2f, -0x1.fffe84p-3f,
                             0x1.99d1f4p-3f, -0x1.55a754p-3f, 0x1.1ebe62p-3f,
                             -0x1.f25dd8p-4f, 0x1.1ed15ep-3f, -0x1.0931fcp-3f);
  return f * f * q;
}
D2L_HOST_DEVICE inline double LogTail(double f) {
  // log(1 + f) = 2 atanh(s), whose series has half as many terms.
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double q = Polynomial(z, 0x1.5555555555776p-1, 0x1.99999998f09ebp-2,
                              0x1.249249b23dd89p-2, 0x1.c71c0151f56e4p-3,
                              0x1.7474e5c0d6853p-3, 0x1.38529995d52c2p-3,
                              0x1.3ac00a2d52a23p-3);
  const double half_square = 0.5 * f * f;
  return Fma(s, Fma(z, q, half_square), -half_square);
}

// (tanh(g) / g - 1) / g^2 in z = g^2, |g| <= log(2) / 4.
D2L_HOST_DEVICE inline float TanhTail(float z) {
  return Polynomial(z, -0x1.55554ep-2f, 0x1.110594p-3f, -0x1.afd7f8p-5f);
}
D2L_HOST_DEVICE inline double TanhTail(double z) {
  return Polynomial(z, -0x1.55555555554bbp-2, 0x1.11111110e0507p-3,
                    -0x1.ba1ba115f3ed2p-5, 0x1.664ec958ae7e7p-6,
                    -0x1.223c51d8d615fp-7, 0x1.c37d19c7b2da3p-9);
}

// e^x for kExpMin <= x <= kExpMax.
template <typename T>
D2L_HOST_DEVICE inline T ExpInRange(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  // x = n log(2) + f, n the integer nearest to x / log(2).
  const T rounded = Fma(x, F::kLog2E, F::kRound);
  const T n = rounded - F::kRound;
  const T f = Fma(n, -F::kLog2Low, Fma(n, -F::kLog2High, x));
  const T p = Fma(Fma(ExpTail(f), f, T{1}), f, T{1});
  // 2^n in two factors, because n may be outside of the exponent's range; only
  // the second may round, overflow or underflow.
  const Bits biased = ToBits(rounded) - ToBits(F::kRound) + 2 * F::kBias;
  const Bits half = biased >> 1;
  return p * FromBits<T>(half << F::kMantissaBits) *
         FromBits<T>((biased - half) << F::kMantissaBits);
}

template <typename T>
D2L_HOST_DEVICE inline T Exp(T x) {
  using F = Format<T>;
  x = Select(x < F::kExpMin, F::kExpMin, x);
  x = Select(x > F::kExpMax, F::kExpMax, x);
  return ExpInRange(x);
}

template <typename T>
D2L_HOST_DEVICE inline T Log(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  constexpr T kScale = static_cast<T>(Bits{1} << F::kMantissaBits);
  constexpr Bits kMantissa = (Bits{1} << F::kMantissaBits) - 1;
  // x = 2^e (1 + f), 2/3 <= 1 + f < 4/3; small numbers are scaled first,
  // because subnormals have no leading bit.
  const T scale = Select(x < T{1}, kScale, T{1});
  const T bias = Select(x < T{1}, F::kRound + F::kBias + F::kMantissaBits,
                        F::kRound + F::kBias);
  const Bits bits =
      ToBits(x * scale) + ((F::kBias << F::kMantissaBits) - F::kTwoThirds);
  const T e =
      FromBits<T>(ToBits(F::kRound) + (bits >> F::kMantissaBits)) - bias;
  const T f = FromBits<T>((bits & kMantissa) + F::kTwoThirds) - T{1};
  // sum + error = e log(2) + f, but for e's product with the low part.
  const T high = e * F::kLog2High;
  const T sum = high + f;
  const T error = f - (sum - high);
  const T y = sum + (LogTail(f) + Fma(e, F::kLog2Low, error));
  // Added to the result where that is not the logarithm.
  T special = x > T{0} ? T{0} : -F::kInfinity;
  special = x < F::kInfinity ? special : x;
  special = x < T{0} ? F::kNan : special;
  return y + special;
}

template <typename T>
D2L_HOST_DEVICE inline T CopySign(T magnitude, T sign) {
  using Bits = typename Format<T>::Bits;
  constexpr Bits kSign = Bits{1} << (sizeof(T) * 8 - 1);
  return FromBits<T>((ToBits(magnitude) & ~kSign) | (ToBits(sign) & kSign));
}

template <typename T>
D2L_HOST_DEVICE inline T Tanh(T x) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  T a = CopySign(x, T{1});
  a = Select(a > F::kTanhMax, F::kTanhMax, a);
  // a = n log(2) / 2 + g, n the nearest integer.
  const T rounded = Fma(a, 2 * F::kLog2E, F::kRound);
  const T n = rounded - F::kRound;
  const T g = Fma(n, -F::kLog2Low / 2, Fma(n, -F::kLog2High / 2, a));
  const T z = g * g;
  const T h = Fma(g * z, TanhTail(z), g);
  // tanh(n log(2) / 2) is (s - 1) / (s + 1), and the addition theorem has the
  // rest. Where n is 0 the result is h.
  const Bits biased = ToBits(rounded) - ToBits(F::kRound) + F::kBias;
  const T s = FromBits<T>(biased << F::kMantissaBits);  // 2^n
  const T y = Fma(s + T{1}, h, s - T{1}) / Fma(s - T{1}, h, s + T{1});
  return CopySign(y, x);
}

template <typename T>
D2L_HOST_DEVICE inline T Sigmoid(T x) {
  using F = Format<T>;
  // e^-|x| does not overflow.
  T a = CopySign(x, T{-1});
  a = Select(a < F::kExpMin, F::kExpMin, a);
  const T e = ExpInRange(a);
  // Computes e t or 1 - t: the quotient's error then weighs less.
  const T t = e / (T{1} + e);
  const T c = Select(x < T{0}, e, T{1});
  return Fma(-c, t, c);
}

// (a + 4) e^(a^2/2) P(X > a), X of the standard normal distribution, in
// t = (a - 4) / (a + 4), for 0 <= a <= kGeluMax.
D2L_HOST_DEVICE inline float GeluTail(float t) {
  return Polynomial(t, 0x1.82b4bcp-1f, -0x1.373e38p-1f, 0x1.8c6d9ep-2f,
                    -0x1.7dfffap-3f, 0x1.eed426p-5f, -0x1.ed31b6p-8f,
                    -0x1.cc7592p-9f, 0x1.9ba366p-10f, 0x1.7a385ap-13f,
                    -0x1.13cac2p-13f);
}
D2L_HOST_DEVICE inline double GeluTail(double t) {
  return Polynomial(
      t, 0x1.82b4bb8c94dcep-1, -0x1.373e3a893c28ap-1, 0x1.8c6dbf2cfc306p-2,
      -0x1.7dff2bff684abp-3, 0x1.eec4cc3e44697p-5, -0x1.ee276104322d4p-8,
      -0x1.c81719c994a01p-9, 0x1.ab825faf0f5cfp-10, 0x1.17a4a61c89dffp-13,
      -0x1.e4a4214c27003p-13, -0x1.001135a0806e1p-19, 0x1.26d05af539956p-15,
      0x1.7fdbd2eef7facp-21, -0x1.8d4829622d2cfp-18, -0x1.4faebcdcba976p-21,
      0x1.12467c34979c5p-20, 0x1.1ba7fc8fff32ap-22, -0x1.5000e037ff69p-23,
      -0x1.4b92a8fe77259p-24, 0x1.1282def12ddc2p-26, 0x1.f5646d5cb27dfp-27,
      -0x1.569d29a4291e2p-32, -0x1.457247d214878p-30);
}

// factor * P(X > a).
template <typename T>
D2L_HOST_DEVICE inline T TimesNormalTail(T factor, T a) {
  // e^(-a^2/2), with the part of a^2 that rounding loses.
  const T square = a * a;
  const T lost = Fma(a, a, -square);
  const T e = ExpInRange(T{-0.5} * square);
  const T normal = Fma(e, T{-0.5} * lost, e);
  const T inverse = T{1} / (a + T{4});
  const T tail = GeluTail((a - T{4}) * inverse) * inverse;
  return factor * tail * normal;
}

template <typename T>
D2L_HOST_DEVICE inline T Gelu(T x) {
  using F = Format<T>;
  T a = CopySign(x, T{1});
  a = Select(a > F::kGeluMax, F::kGeluMax, a);
  // x P(X < x) is -a P(X > a) below zero, and x - a P(X > a) above.
  const T rest = TimesNormalTail(a, a);
  return Select(x < T{0}, -rest, x - rest);
}

template <typename T>
D2L_HOST_DEVICE inline T Ndtr(T x) {
  using F = Format<T>;
  T a = CopySign(x, T{1});
  a = Select(a > F::kGeluMax, F::kGeluMax, a);
  const T rest = TimesNormalTail(T{1}, a);
  return Select(x < T{0}, rest, T{1} - rest);
}

}  // namespace internal

// e^x.
D2L_HOST_DEVICE inline float Exp(float x) { return internal::Exp(x); }
D2L_HOST_DEVICE inline double Exp(double x) { return internal::Exp(x); }

// The natural logarithm: 0 gives -infinity, negative numbers give NaN.
D2L_HOST_DEVICE inline float Log(float x) { return internal::Log(x); }
D2L_HOST_DEVICE inline double Log(double x) { return internal::Log(x); }

// The hyperbolic tangent; Tanh(-x) is -Tanh(x), for zero too.
D2L_HOST_DEVICE inline float Tanh(float x) { return internal::Tanh(x); }
D2L_HOST_DEVICE inline double Tanh(double x) { return internal::Tanh(x); }

// 1 / (1 + e^-x).
D2L_HOST_DEVICE inline float Sigmoid(float x) { return internal::Sigmoid(x); }
D2L_HOST_DEVICE inline double Sigmoid(double x) { return internal::Sigmoid(x); }

// x P(X < x), X of the standard normal distribution: x (1 + erf(x / √2)) / 2.
// -infinity gives the limit, -0, where that formula gives NaN.
D2L_HOST_DEVICE inline float Gelu(float x) { return internal::Gelu(x); }
D2L_HOST_DEVICE inline double Gelu(double x) { return internal::Gelu(x); }

// P(X < x), X of the standard normal distribution.
D2L_HOST_DEVICE inline float Ndtr(float x) { return internal::Ndtr(x); }
D2L_HOST_DEVICE inline double Ndtr(double x) { return internal::Ndtr(x); }

}  // namespace d2l::kernels::math

#endif  // D2L_COMMON_KERNELS_MATH_H_
