#include "common/kernels/philox.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace d2l::kernels {
namespace {

struct KnownAnswer {
  PhiloxBlock counter;
  std::uint32_t key0, key1;
  PhiloxBlock result;
};

// From the paper's own list of known answers (kat_vectors, philox4x32 10).
constexpr KnownAnswer kKnownAnswers[] = {
    {{{0x00000000, 0x00000000, 0x00000000, 0x00000000}},
     0x00000000,
     0x00000000,
     {{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}}},
    {{{0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}},
     0xFFFFFFFF,
     0xFFFFFFFF,
     {{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}}},
    {{{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}},  // the digits of pi
     0xA4093822,
     0x299F31D0,
     {{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}}},
};

TEST(PhiloxTest, KnownAnswers) {
  for (const KnownAnswer& known : kKnownAnswers) {
    const PhiloxBlock block = Philox4x32(known.counter, known.key0, known.key1);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(block.word[i], known.result.word[i]) << i;
    }
  }
}

TEST(PhiloxTest, SeedIsTheKeyAndIndexTheLowHalfOfTheCounter) {
  const PhiloxBlock a = Philox(0x299F31D0A4093822, 0x85A308D3243F6A88);
  const PhiloxBlock b =
      Philox4x32({{0x243F6A88, 0x85A308D3, 0, 0}}, 0xA4093822, 0x299F31D0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(a.word[i], b.word[i]) << i;
}

TEST(PhiloxTest, RandomBlocksRoundsUp) {
  EXPECT_EQ(RandomBlocks<float>(0), 0u);
  EXPECT_EQ(RandomBlocks<float>(1), 1u);
  EXPECT_EQ(RandomBlocks<float>(4), 1u);
  EXPECT_EQ(RandomBlocks<float>(5), 2u);
  EXPECT_EQ(RandomBlocks<double>(2), 1u);
  EXPECT_EQ(RandomBlocks<double>(3), 2u);
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(RandomBlocks<float>(kMax), std::uint64_t{1} << 61);
  EXPECT_EQ(RandomBlocks<double>(kMax), std::uint64_t{1} << 62);
}

TEST(PhiloxTest, UniformsTakeTheTopBitsAndStayBelowOne) {
  EXPECT_EQ(UniformFloat(0), 0.0f);
  EXPECT_EQ(UniformFloat(0xFF), 0.0f);
  EXPECT_EQ(UniformFloat(0x100), 0x1p-24f);
  EXPECT_EQ(UniformFloat(0x80000000), 0.5f);
  EXPECT_EQ(UniformFloat(0xFFFFFFFF), 1.0f - 0x1p-24f);
  EXPECT_EQ(UniformDouble(0, 0), 0.0);
  EXPECT_EQ(UniformDouble(0, 0x7FF), 0.0);
  EXPECT_EQ(UniformDouble(0, 0x800), 0x1p-53);
  EXPECT_EQ(UniformDouble(1, 0), 0x1p-32);
  EXPECT_EQ(UniformDouble(0x80000000, 0), 0.5);
  EXPECT_EQ(UniformDouble(0xFFFFFFFF, 0xFFFFFFFF), 1.0 - 0x1p-53);
}

TEST(PhiloxTest, BlocksAreMadeOfTheirWordsInOrder) {
  const PhiloxBlock block = Philox(3, 5);
  float f[4], pair[2];
  double d[2];
  Uniforms(block, f);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(f[i], UniformFloat(block.word[i]));
  Uniforms(block, d);
  EXPECT_EQ(d[0], UniformDouble(block.word[0], block.word[1]));
  EXPECT_EQ(d[1], UniformDouble(block.word[2], block.word[3]));
  Normals(block, f);
  NormalPair(block.word[2], block.word[3], pair);
  EXPECT_EQ(f[2], pair[0]);
  EXPECT_EQ(f[3], pair[1]);
}

// Box and Muller's formula in long double, from the same words.
TEST(PhiloxTest, ScaledIsTheUpperHalf) {
  __extension__ using Wide = unsigned __int128;
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t word = random() >> random() % 64;
    const std::uint64_t range = random() >> random() % 64;
    ASSERT_EQ(Scaled(word, range), static_cast<std::uint64_t>(
                                       static_cast<Wide>(word) * range >> 64));
  }
}

TEST(PhiloxTest, NormalsAreBoxAndMullers) {
  const long double half_pi = std::acos(-1.0L) / 2;
  for (std::uint64_t index = 0; index < 10'000; ++index) {
    const PhiloxBlock block = Philox(11, index);
    const std::uint32_t* w = block.word;
    float z[2];
    NormalPair(w[0], w[1], z);
    long double u = ((w[0] >> 1) + 0.5L) / 2147483648.0L;
    long double t = static_cast<std::int32_t>(w[1]) / 2147483648.0L;
    long double angle = (w[0] & 1) != 0 ? half_pi * (2 - t) : half_pi * t;
    long double radius = std::sqrt(-2 * std::log(u));
    // u and t are rounded to 24 bits: the radius changes most near u = 1.
    const long double bound = 1e-6L + 1e-7L / std::max(radius, 1e-3L);
    ASSERT_NEAR(z[0], radius * std::cos(angle), bound) << index;
    ASSERT_NEAR(z[1], radius * std::sin(angle), bound) << index;

    double y[2];
    NormalPair(w[0], w[1], w[2], w[3], y);
    u = static_cast<long double>(UniformDouble(w[0], w[1])) + 0x1p-54L;
    t = 2 * static_cast<long double>(UniformDouble(w[2], w[3])) - 1;
    angle = (w[1] & 1) != 0 ? half_pi * (2 - t) : half_pi * t;
    radius = std::sqrt(-2 * std::log(u));
    ASSERT_NEAR(y[0], radius * std::cos(angle), 1e-14L) << index;
    ASSERT_NEAR(y[1], radius * std::sin(angle), 1e-14L) << index;
  }
}

// |actual - expected| in units of the last place of `expected` as a T.
template <typename T>
double Ulps(T actual, long double expected) {
  if (expected == 0) return actual == 0 ? 0 : HUGE_VAL;
  int exponent;
  std::frexp(expected, &exponent);
  const long double ulp =
      std::ldexp(1.0L, exponent - std::numeric_limits<T>::digits);
  return static_cast<double>(std::fabs(actual - expected) / ulp);
}

TEST(PhiloxTest, FloatLogarithmIsAccurate) {
  double worst = 0;
  const auto check = [&worst](std::uint32_t bits) {
    float u;
    std::memcpy(&u, &bits, sizeof(u));
    const float y = MinusTwoLog(u);
    ASSERT_TRUE(y >= 0 && y <= 44.362f) << bits;
    worst = std::max(worst, Ulps(y, -2 * std::log(static_cast<double>(u))));
  };
  constexpr std::uint32_t kSmallest = 0x2F800000, kOne = 0x3F800000;
  for (std::uint32_t bits = kSmallest; bits < kOne; bits += 97) check(bits);
  // Both sides of each step of the exponent, and all of the last 2^16 before
  // one, where the logarithm goes to zero.
  for (std::uint32_t e = 0; e < 32; ++e) {
    for (std::uint32_t m = 0; m < 100; ++m) {
      check(kSmallest + (e << 23) + m);
      check(kSmallest + (e << 23) + 0x7FFFFF - m);
      check(kSmallest + (e << 23) + (kSqrtHalfFloat & 0x7FFFFF) + m - 50);
    }
  }
  for (std::uint32_t bits = kOne - 65536; bits <= kOne; ++bits) check(bits);
  EXPECT_LE(worst, 1.6);  // 1.54 over all floats in [2^-32, 1]
}

TEST(PhiloxTest, DoubleLogarithmIsAccurate) {
  std::mt19937_64 random(1);
  double worst = 0;
  for (int i = 0; i < 300'000; ++i) {
    // All magnitudes of u, and of 1 - u.
    std::uint64_t k = random() >> (11 + (i / 3) % 53);
    if (i % 3 == 0) k = (std::uint64_t{1} << 53) - 1 - k;
    if (i % 3 == 1) k = random() >> 11;
    const double u = static_cast<double>(k) * 0x1p-53 + 0x1p-54;
    const double y = MinusTwoLog(u);
    ASSERT_TRUE(y >= 0 && y <= 74.86) << u;
    worst =
        std::max(worst, Ulps(y, -2 * std::log(static_cast<long double>(u))));
  }
  EXPECT_LE(worst, 1.6);
}

template <typename T>
void CheckSinCos(T t, double* worst) {
  const long double half_pi = std::acos(-1.0L) / 2;
  T sin, cos;
  SinCosHalfPi(t, &sin, &cos);
  const long double x = t;
  *worst = std::max(*worst, Ulps(sin, std::sin(half_pi * x)));
  // 1 - |t| is exact, so this is as good near the cosine's zeros.
  *worst = std::max(*worst, Ulps(cos, std::sin(half_pi * (1 - std::fabs(x)))));
  ASSERT_GE(cos, 0);
  ASSERT_LE(cos, 1);
  ASSERT_LE(std::fabs(sin), 1 + std::numeric_limits<T>::epsilon());
}

TEST(PhiloxTest, SineAndCosineAreAccurate) {
  double worst = 0;
  for (int k = -(1 << 24); k <= 1 << 24; k += 61) {
    CheckSinCos(static_cast<float>(k) * 0x1p-24f, &worst);
  }
  for (int e = 1; e <= 31; ++e) CheckSinCos(std::ldexp(1.0f, -e), &worst);
  for (const float t : {-1.0f, 1.0f, 0.0f, 1 - 0x1p-24f, 0x1p-24f - 1}) {
    CheckSinCos(t, &worst);
  }
  EXPECT_LE(worst, 2.9);
  worst = 0;
  std::mt19937_64 random(2);
  for (int i = 0; i < 300'000; ++i) {
    const std::uint64_t k = random() >> 11;
    CheckSinCos(2 * (static_cast<double>(k) * 0x1p-53) - 1, &worst);
    CheckSinCos(static_cast<double>(k >> (i % 53)) * 0x1p-53, &worst);
    CheckSinCos(1 - static_cast<double>(k >> (i % 53)) * 0x1p-53, &worst);
  }
  EXPECT_LE(worst, 2.7);
}

// The radius is largest for the smallest u and never NaN for a larger one; so
// no words make a normal that is not finite.
TEST(PhiloxTest, ExtremeWordsMakeFiniteNormals) {
  std::vector<std::uint32_t> words = {0, 0xFFFFFFFF};
  for (int bit = 0; bit < 32; ++bit) {
    const std::uint32_t power = std::uint32_t{1} << bit;
    for (const std::uint32_t w : {power - 1, power, power + 1}) {
      words.push_back(w);
      words.push_back(~w);
    }
  }
  float largest = 0;
  for (const std::uint32_t w0 : words) {
    for (const std::uint32_t w1 : words) {
      float z[2];
      NormalPair(w0, w1, z);
      ASSERT_TRUE(std::isfinite(z[0]) && std::isfinite(z[1]))
          << w0 << " " << w1;
      largest = std::max({largest, std::fabs(z[0]), std::fabs(z[1])});
    }
  }
  EXPECT_LE(largest, 6.661f);
  EXPECT_GE(largest, 6.660f);

  double largest_double = 0;
  for (const std::uint32_t w0 : {0u, 1u, 0x80000000u, 0xFFFFFFFFu}) {
    for (const std::uint32_t w1 : words) {
      for (const std::uint32_t w2 : words) {
        for (const std::uint32_t w3 : {0u, 0x7FFu, 0x800u, 0xFFFFFFFFu}) {
          double z[2];
          NormalPair(w0, w1, w2, w3, z);
          ASSERT_TRUE(std::isfinite(z[0]) && std::isfinite(z[1]));
          largest_double =
              std::max({largest_double, std::fabs(z[0]), std::fabs(z[1])});
        }
      }
    }
  }
  EXPECT_LE(largest_double, 8.653);
  EXPECT_GE(largest_double, 8.652);
}

}  // namespace
}  // namespace d2l::kernels
