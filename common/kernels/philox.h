// Random numbers as a function of their position: no state, so any thread of
// any device computes any element, in any order, and gets the same numbers.
//
//   PhiloxBlock block = Philox(/*seed=*/42, /*index=*/offset + i / 4);
//   float u = UniformFloat(block.word[i % 4]);                  // in [0, 1)
//   float z[4];
//   Normals(block, z);                                          // z[i % 4]
//
// Philox 4x32-10 (J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw,
// "Parallel random numbers: as easy as 1, 2, 3", SC'11) turns a counter of 128
// bits and a key of 64 into four words of 32 bits. The key is the seed, low
// half first; the counter is the 64-bit index of the block, low half first,
// followed by 64 zero bits.
//
// Layout. A call for n elements at `offset`:
//
//   float   element i is made of word i mod 4 of block offset + i / 4; the
//           call uses ceil(n / 4) blocks
//   double  element i is made of words 2 (i mod 2) and 2 (i mod 2) + 1 of
//           block offset + i / 2; the call uses ceil(n / 2) blocks
//
// Whole numbers low + k, k in [0, range), whatever their type, use one word, as
// a float does, if range <= 2^32, and else two, as a double does: the first is
// the upper half of a 64-bit number. k is the upper half of that number, or
// word, times range; the sum wraps around and is then converted to the type.
// Some numbers are likelier than others, by one part in 2^32 / range (2^64 /
// range), rounded down.
//
// RandomBlocks<T>(n) is how many blocks a call uses: the next call's offset is
// that much more. Block indices wrap around at 2^64.
//
// Uniforms are k * 2^-24 (double: k * 2^-53), k the top 24 (53) bits, so they
// are in [0, 1), evenly spaced, and the same bits on every machine.
//
// Normals are made in pairs (G. E. P. Box, M. E. Muller, "A note on the
// generation of random normal deviates", Ann. Math. Stat. 29, 1958): float
// elements 2j and 2j + 1 use words 2j and 2j + 1, doubles all four words. The
// radius sqrt(-2 log u) takes u in (0, 1], moved away from zero by half a unit
// of its last place: every draw is finite, |z| <= 6.661 (double: 8.653). The
// angle is pi/2 * t with t in [-1, 1], which is the half circle of positive
// cosines; one bit that u does not use turns the cosine's sign.
//
// The logarithm, sine and cosine are polynomials in explicit fused
// multiply-adds; the rest is exact or correctly rounded by IEEE 754 (+, -, *,
// /, sqrt). So normals are the same bits wherever fma() rounds once: here
// always, in vector code from AVX2 on, on NEON and on CUDA.
//
// Largest errors found, in units of the last place: logarithm 1.6 (double 1.5),
// sine and cosine 2.9 (2.6).
//
// Everything is thread-safe and cannot fail.

#ifndef D2L_COMMON_KERNELS_PHILOX_H_
#define D2L_COMMON_KERNELS_PHILOX_H_

#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/kernels/host_device.h"
#include "common/kernels/math.h"

namespace d2l::kernels {

struct PhiloxBlock {
  std::uint32_t word[4];
};

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr std::uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kPhiloxKeyStep0 = 0x9E3779B9;
inline constexpr std::uint32_t kPhiloxKeyStep1 = 0xBB67AE85;

// The function of the paper: all 128 bits of the counter, both words of the
// key.
D2L_HOST_DEVICE inline PhiloxBlock Philox4x32(PhiloxBlock counter,
                                              std::uint32_t key0,
                                              std::uint32_t key1) {
  std::uint32_t x0 = counter.word[0], x1 = counter.word[1];
  std::uint32_t x2 = counter.word[2], x3 = counter.word[3];
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t p0 = std::uint64_t{kPhiloxMultiplier0} * x0;
    const std::uint64_t p1 = std::uint64_t{kPhiloxMultiplier1} * x2;
    x0 = static_cast<std::uint32_t>(p1 >> 32) ^ x1 ^ key0;
    x1 = static_cast<std::uint32_t>(p1);
    x2 = static_cast<std::uint32_t>(p0 >> 32) ^ x3 ^ key1;
    x3 = static_cast<std::uint32_t>(p0);
    key0 += kPhiloxKeyStep0;
    key1 += kPhiloxKeyStep1;
  }
  return PhiloxBlock{{x0, x1, x2, x3}};
}

// Block `index` of the stream that `seed` names.
D2L_HOST_DEVICE inline PhiloxBlock Philox(std::uint64_t seed,
                                          std::uint64_t index) {
  return Philox4x32(
      PhiloxBlock{{static_cast<std::uint32_t>(index),
                   static_cast<std::uint32_t>(index >> 32), 0, 0}},
      static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

// How many elements one block makes, and how many blocks a call for n takes.
template <typename T>
inline constexpr int kElementsPerBlock = 16 / static_cast<int>(sizeof(T));

template <typename T>
D2L_HOST_DEVICE constexpr std::uint64_t RandomBlocks(std::int64_t n) {
  return static_cast<std::uint64_t>(n / kElementsPerBlock<T> +
                                    (n % kElementsPerBlock<T> != 0));
}

D2L_HOST_DEVICE inline float UniformFloat(std::uint32_t word) {
  return static_cast<float>(static_cast<std::int32_t>(word >> 8)) * 0x1p-24f;
}

// Uses the top 53 of the words' 64 bits.
D2L_HOST_DEVICE inline double UniformDouble(std::uint32_t high,
                                            std::uint32_t low) {
  const std::uint64_t k = (std::uint64_t{high} << 21) | (low >> 11);
  return static_cast<double>(static_cast<std::int64_t>(k)) * 0x1p-53;
}

// Coefficients of the polynomials: minimax for the relative error, found by
// Remez's algorithm in 50 digits, then rounded. CoefficientsOf(T{}) are those
// of T.

struct FloatCoefficients {
  // -2 log(1 + f) / f, f in [sqrt(1/2) - 1, sqrt(2) - 1], to 2^-27.9.
  float log[10];
  float minus_two_log2;
  // sin(pi/2 t) / t in t^2, t in [-1, 1], to 2^-27.5.
  float sin[5];
  // cos(pi/2 t) / (1 - t^2) in t^2, t in [-1, 1], to 2^-29.9.
  float cos[5];
};

D2L_HOST_DEVICE constexpr FloatCoefficients CoefficientsOf(float) {
  return {{-0x1.000000p+1f, 0x1.fffff8p-1f, -0x1.555550p-1f, 0x1.000428p-1f,
           -0x1.99a3ecp-2f, 0x1.542710p-2f, -0x1.2271a2p-2f, 0x1.0f39d8p-2f,
           -0x1.0849c0p-2f, 0x1.3829c4p-3f},
          -0x1.62e430p+0f,
          {0x1.921fb6p+0f, -0x1.4abbc2p-1f, 0x1.4668b0p-4f, -0x1.324ccap-8f,
           0x1.3daff6p-13f},
          {0x1.000000p+0f, -0x1.de9e5ep-3f, 0x1.472a56p-6f, -0x1.d474e0p-11f,
           0x1.8bbda0p-16f}};
}

struct DoubleCoefficients {
  // -4 (atanh(s) / s - 1) / s^2 in s^2, s = f / (2 + f), f as above; the error
  // relative to the logarithm is 2^-59.5.
  double log[7];
  // -2 log(2) in two parts; the first times an exponent is exact.
  double minus_two_log2_high, minus_two_log2_low;
  // As above, to 2^-61.8 and 2^-64.9.
  double sin[9];
  double cos[9];
};

D2L_HOST_DEVICE constexpr DoubleCoefficients CoefficientsOf(double) {
  return {
      {-0x1.5555555555592p+0, -0x1.999999997fe5bp-1, -0x1.24924941e99f2p-1,
       -0x1.c71c520eb06b0p-2, -0x1.74663dedce310p-2, -0x1.39a1d1c87b808p-2,
       -0x1.2f048c653a9e8p-2},
      -0x1.62e42fefa3000p+0,
      -0x1.3de6af278ece6p-41,
      {0x1.921fb54442d18p+0, -0x1.4abbce625be52p-1, 0x1.466bc6775aa6ep-4,
       -0x1.32d2cce627542p-8, 0x1.50783485190b6p-13, -0x1.e3074ddd1cb96p-19,
       0x1.e8f35e9d2300ap-25, -0x1.6f797703e284dp-31, 0x1.9d1b8585e59b7p-38},
      {0x1.0000000000000p+0, -0x1.de9e64df22ef3p-3, 0x1.472be12243483p-6,
       -0x1.d4fcd83113f93p-11, 0x1.9f05cafeea85ep-16, -0x1.f309e72066c63p-22,
       0x1.b267f400cd923p-28, -0x1.1e5598fad194dp-34, 0x1.1f86a407f09e1p-41}};
}

// The bits of sqrt(1/2), rounded: subtracted from those of u = 2^e m, m in
// [sqrt(1/2), sqrt(2)), they leave e in the exponent's field.
inline constexpr std::uint32_t kSqrtHalfFloat = 0x3F3504F3;
inline constexpr std::uint64_t kSqrtHalfDouble = 0x3FE6A09E667F3BCD;

// c[i] + c[i + 1] x + ..., by fused multiply-adds.
template <int i = 0, typename T, int kCount>
D2L_HOST_DEVICE inline T Polynomial(T x, const T (&c)[kCount]) {
  if constexpr (i == kCount - 1) {
    return c[i];
  } else {
    return math::Fma(Polynomial<i + 1>(x, c), x, c[i]);
  }
}

// -2 log(u) for a normal (not subnormal) u in (0, 1].
D2L_HOST_DEVICE inline float MinusTwoLog(float u) {
  constexpr FloatCoefficients k = CoefficientsOf(float{});
  std::uint32_t bits;
  std::memcpy(&bits, &u, sizeof(bits));
  const std::int32_t e = static_cast<std::int32_t>(bits - kSqrtHalfFloat) >> 23;
  bits -= static_cast<std::uint32_t>(e) << 23;
  float m;
  std::memcpy(&m, &bits, sizeof(m));
  const float f = m - 1.0f;
  return fmaf(static_cast<float>(e), k.minus_two_log2,
              f * Polynomial(f, k.log));
}

D2L_HOST_DEVICE inline double MinusTwoLog(double u) {
  constexpr DoubleCoefficients k = CoefficientsOf(double{});
  std::uint64_t bits;
  std::memcpy(&bits, &u, sizeof(bits));
  const std::int64_t e =
      static_cast<std::int64_t>(bits - kSqrtHalfDouble) >> 52;
  bits -= static_cast<std::uint64_t>(e) << 52;
  double m;
  std::memcpy(&m, &bits, sizeof(m));
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double p = fma(Polynomial(z, k.log), s * z, s * -4.0);
  const double exponent = static_cast<double>(e);
  return fma(exponent, k.minus_two_log2_high,
             fma(exponent, k.minus_two_log2_low, p));
}

// The sine and cosine of pi/2 * t, t in [-1, 1].
template <typename T>
D2L_HOST_DEVICE inline void SinCosHalfPi(T t, T* sin, T* cos) {
  constexpr auto k = CoefficientsOf(T{});
  const T z = t * t;
  *sin = Polynomial(z, k.sin) * t;
  *cos = Polynomial(z, k.cos) * math::Fma(-t, t, T{1});
}

// Two normals of two words: u takes the top 31 bits of w0, the sign its lowest
// bit, t all of w1.
D2L_HOST_DEVICE inline void NormalPair(std::uint32_t w0, std::uint32_t w1,
                                       float* z) {
  const float u = fmaf(static_cast<float>(static_cast<std::int32_t>(w0 >> 1)),
                       0x1p-31f, 0x1p-32f);
  const float t = static_cast<float>(static_cast<std::int32_t>(w1)) * 0x1p-31f;
  const float radius = sqrtf(MinusTwoLog(u));
  float sin, cos;
  SinCosHalfPi(t, &sin, &cos);
  z[0] = radius * ((w0 & 1) != 0 ? -cos : cos);
  z[1] = radius * sin;
}

// Two normals of four words: u takes the top 53 bits of w0 and w1, the sign
// the lowest of w1, t the top 53 bits of w2 and w3.
D2L_HOST_DEVICE inline void NormalPair(std::uint32_t w0, std::uint32_t w1,
                                       std::uint32_t w2, std::uint32_t w3,
                                       double* z) {
  const double u = UniformDouble(w0, w1) + 0x1p-54;
  const double t = 2.0 * UniformDouble(w2, w3) - 1.0;
  const double radius = sqrt(MinusTwoLog(u));
  double sin, cos;
  SinCosHalfPi(t, &sin, &cos);
  z[0] = radius * ((w1 & 1) != 0 ? -cos : cos);
  z[1] = radius * sin;
}

// All elements of a block.

D2L_HOST_DEVICE inline void Uniforms(const PhiloxBlock& block, float* out) {
  for (int i = 0; i < 4; ++i) out[i] = UniformFloat(block.word[i]);
}

D2L_HOST_DEVICE inline void Uniforms(const PhiloxBlock& block, double* out) {
  out[0] = UniformDouble(block.word[0], block.word[1]);
  out[1] = UniformDouble(block.word[2], block.word[3]);
}

D2L_HOST_DEVICE inline void Normals(const PhiloxBlock& block, float* out) {
  NormalPair(block.word[0], block.word[1], out);
  NormalPair(block.word[2], block.word[3], out + 2);
}

D2L_HOST_DEVICE inline void Normals(const PhiloxBlock& block, double* out) {
  NormalPair(block.word[0], block.word[1], block.word[2], block.word[3], out);
}

D2L_HOST_DEVICE inline void Words(const PhiloxBlock& block,
                                  std::uint32_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = block.word[i];
}

D2L_HOST_DEVICE inline void Words(const PhiloxBlock& block,
                                  std::uint64_t* out) {
  out[0] = std::uint64_t{block.word[0]} << 32 | block.word[1];
  out[1] = std::uint64_t{block.word[2]} << 32 | block.word[3];
}

// The upper half of word * range: a number in [0, range).
D2L_HOST_DEVICE inline std::uint64_t Scaled(std::uint32_t word,
                                            std::uint64_t range) {
  return (word * range) >> 32;
}

D2L_HOST_DEVICE inline std::uint64_t Scaled(std::uint64_t word,
                                            std::uint64_t range) {
#ifdef __CUDA_ARCH__
  return __umul64hi(word, range);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(word) * range >> 64);
#endif
}

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_PHILOX_H_
