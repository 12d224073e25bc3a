#include "common/kernels/math.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "common/kernels/functors.h"
#include "common/kernels/op_tables.h"
#include "common/kernels/testing/unary_cases.h"
#include "gtest/gtest.h"

namespace d2l::kernels::math {
namespace {

constexpr float kInfinityF = std::numeric_limits<float>::infinity();
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();

// The distance from the true value in units of T's last place there. Infinity
// counts as the number that would follow the largest one.
template <typename T, typename R>
double Ulps(T value, R truth) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  using Limits = std::numeric_limits<T>;
  if (std::isnan(truth)) return std::isnan(value) ? 0 : kWrong;
  if (std::isnan(value)) return kWrong;
  if (std::isinf(truth)) return static_cast<R>(value) == truth ? 0 : kWrong;
  const R beyond = std::ldexp(R{1}, Limits::max_exponent);
  // A number beyond T's range must give infinity.
  if (std::fabs(truth) >= beyond) {
    return std::isinf(value) && (value > 0) == (truth > 0) ? 0 : kWrong;
  }
  const R v = std::isinf(value) ? std::copysign(beyond, static_cast<R>(value))
                                : static_cast<R>(value);
  int exponent = Limits::min_exponent;
  if (truth != 0) {
    int e;
    std::frexp(truth, &e);
    if (e > exponent) exponent = e;
  }
  return static_cast<double>(std::fabs(v - truth) /
                             std::ldexp(R{1}, exponent - Limits::digits));
}

template <typename T>
struct Worst {
  template <typename R>
  void Add(T x, T value, R truth) {
    const double error = Ulps(value, truth);
    if (error > ulps) {
      ulps = error;
      argument = x;
    }
  }
  double ulps = 0;
  T argument = 0;
};

// Rows of the table of functions of one operand: their functors, compared with
// the formulas of testing/unary_cases.h.
template <typename Row>
class MathTest : public testing::Test {
 protected:
  using F = typename Row::Functor;
  static const UnaryCase& Case() {
    return UnaryCases()[static_cast<std::size_t>(Row::op)];
  }
  // A result that is the nearest number is off by half a unit.
  static double MaxUlps() { return std::max(Case().ulps, 0.5); }
};

struct RowName {
  template <typename Row>
  static std::string GetName(int) {
    return OpName(Row::op);
  }
};

template <typename Tuple>
struct TypesOf;
template <typename... Row>
struct TypesOf<const std::tuple<Row...>> {
  using type = testing::Types<Row...>;
};
using Rows = TypesOf<decltype(OpTable<UnaryOp>::kRows)>::type;
TYPED_TEST_SUITE(MathTest, Rows, RowName);

TYPED_TEST(MathTest, FloatsOfAllMagnitudes) {
  Worst<float> worst;
  // Prime, so that all low bits occur, and every exponent thousands of times.
  constexpr std::uint64_t kStride = 4099;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << 32; i += kStride) {
    const float x = internal::FromBits<float>(static_cast<std::uint32_t>(i));
    worst.Add(x, typename TestFixture::F()(x),
              TestFixture::Case().formula(static_cast<double>(x)));
  }
  EXPECT_LE(worst.ulps, TestFixture::MaxUlps())
      << testing::PrintToString(worst.argument);
}

TYPED_TEST(MathTest, DoublesOfAllMagnitudes) {
  if (std::numeric_limits<long double>::digits <= 53) {
    GTEST_SKIP() << "long double is no more precise than double";
  }
  Worst<double> worst;
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000000; ++i) {
    const double x = internal::FromBits<double>(random());
    worst.Add(x, typename TestFixture::F()(x),
              TestFixture::Case().precise(static_cast<long double>(x)));
  }
  EXPECT_LE(worst.ulps, TestFixture::MaxUlps())
      << testing::PrintToString(worst.argument);
}

// Where the functions are neither trivial nor saturated.
TYPED_TEST(MathTest, DoublesOfInterest) {
  if (std::numeric_limits<long double>::digits <= 53) {
    GTEST_SKIP() << "long double is no more precise than double";
  }
  Worst<double> worst;
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (double scale : {1e-8, 0.01, 0.4, 1.0, 4.0, 20.0, 100.0, 746.0}) {
    for (double center : {0.0, 1.0}) {
      for (int i = 0; i < 50000; ++i) {
        const double x = center + scale * uniform(random);
        worst.Add(x, typename TestFixture::F()(x),
                  TestFixture::Case().precise(static_cast<long double>(x)));
      }
    }
  }
  EXPECT_LE(worst.ulps, TestFixture::MaxUlps())
      << testing::PrintToString(worst.argument);
}

TYPED_TEST(MathTest, NanGivesNan) {
  const typename TestFixture::F f;
  for (float sign : {1.0f, -1.0f}) {
    const float nan = std::copysign(kNanF, sign);
    EXPECT_TRUE(std::isnan(f(nan)));
    EXPECT_TRUE(std::isnan(f(static_cast<double>(nan))));
  }
}

// Loops that the compiler vectorises.
template <typename F, typename T>
void Plain(const T* in, T* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = F()(in[i]);
}

#if defined(__x86_64__)
template <typename F, typename T>
__attribute__((target("avx2,fma"))) void Avx2(const T* in, T* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = F()(in[i]);
}

template <typename F, typename T>
__attribute__((target("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw"))) void
Avx512(const T* in, T* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = F()(in[i]);
}

template <typename F, typename T>
void ExpectVectorsGiveTheSameBits() {
  constexpr int kSize = 40003;  // odd: the loop's remainder counts, too
  std::mt19937_64 random(13);
  std::normal_distribution<double> normal(0, 4);
  std::vector<T> in(kSize), expected(kSize), got(kSize);
  for (int i = 0; i < kSize; ++i) {
    in[i] =
        i % 2 == 0
            ? static_cast<T>(normal(random))
            : internal::FromBits<T>(
                  static_cast<typename internal::Format<T>::Bits>(random()));
  }
  in[0] = static_cast<T>(kNanF);
  in[1] = static_cast<T>(kInfinityF);
  in[2] = static_cast<T>(-kInfinityF);
  in[3] = T{0};
  in[4] = -T{0};
  Plain<F>(in.data(), expected.data(), kSize);
  const auto expect_same = [&] {
    for (int i = 0; i < kSize; ++i) {
      // NaN may differ in their bits.
      if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
      ASSERT_EQ(internal::ToBits(expected[i]), internal::ToBits(got[i]))
          << testing::PrintToString(in[i]);
    }
  };
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    Avx2<F>(in.data(), got.data(), kSize);
    expect_same();
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw")) {
    got.assign(kSize, T{0});
    Avx512<F>(in.data(), got.data(), kSize);
    expect_same();
  }
}

TYPED_TEST(MathTest, VectorsOfFloatsGiveTheSameBits) {
  ExpectVectorsGiveTheSameBits<typename TestFixture::F, float>();
}
TYPED_TEST(MathTest, VectorsOfDoublesGiveTheSameBits) {
  ExpectVectorsGiveTheSameBits<typename TestFixture::F, double>();
}
#endif  // defined(__x86_64__)

template <typename T>
class MathSpecialTest : public testing::Test {
 protected:
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr T kTiny = std::numeric_limits<T>::denorm_min();
  static constexpr T kMax = std::numeric_limits<T>::max();
};

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(MathSpecialTest, Types, );

TYPED_TEST(MathSpecialTest, Exp) {
  using T = TypeParam;
  EXPECT_EQ(Exp(T{0}), T{1});
  EXPECT_EQ(Exp(-T{0}), T{1});
  EXPECT_EQ(Exp(this->kTiny), T{1});
  EXPECT_EQ(Exp(this->kInfinity), this->kInfinity);
  EXPECT_EQ(Exp(this->kMax), this->kInfinity);
  EXPECT_EQ(Exp(-this->kInfinity), T{0});
  EXPECT_EQ(Exp(-this->kMax), T{0});
  EXPECT_FALSE(std::signbit(Exp(-this->kInfinity)));
  // The last finite power, and the smallest subnormal one.
  const T log2 = std::log(T{2});
  const T last = std::log(this->kMax);
  EXPECT_LT(Exp(std::nextafter(last, T{0})), this->kInfinity);
  EXPECT_EQ(Exp(last + T{1}), this->kInfinity);
  EXPECT_EQ(Exp(std::log(this->kTiny)), this->kTiny);
  EXPECT_EQ(Exp(std::log(this->kTiny) - log2 - T{0.5}), T{0});
}

TYPED_TEST(MathSpecialTest, Log) {
  using T = TypeParam;
  EXPECT_EQ(Log(T{1}), T{0});
  EXPECT_FALSE(std::signbit(Log(T{1})));
  EXPECT_EQ(Log(T{0}), -this->kInfinity);
  EXPECT_EQ(Log(-T{0}), -this->kInfinity);
  EXPECT_EQ(Log(this->kInfinity), this->kInfinity);
  for (T x : {-this->kTiny, T{-1}, -this->kMax, -this->kInfinity}) {
    EXPECT_TRUE(std::isnan(Log(x))) << x;
  }
  // The neighbours of 1, where log(1 + f) is f to the last place.
  const T epsilon = std::numeric_limits<T>::epsilon();
  EXPECT_EQ(Log(T{1} - epsilon / 2), -epsilon / 2);
  EXPECT_LE(Ulps(Log(T{1} + epsilon), std::log1pl(epsilon)), 1);
  EXPECT_LE(
      Ulps(Log(this->kTiny), std::log(static_cast<long double>(this->kTiny))),
      1);
}

TYPED_TEST(MathSpecialTest, Tanh) {
  using T = TypeParam;
  EXPECT_EQ(Tanh(T{0}), T{0});
  EXPECT_FALSE(std::signbit(Tanh(T{0})));
  EXPECT_TRUE(std::signbit(Tanh(-T{0})));
  for (T x : {this->kTiny, std::numeric_limits<T>::min(), T{1e-30f}}) {
    EXPECT_EQ(Tanh(x), x);
  }
  for (T x : {T{20}, this->kMax, this->kInfinity}) {
    EXPECT_EQ(Tanh(x), T{1}) << x;
    EXPECT_EQ(Tanh(-x), T{-1}) << x;
  }
  std::mt19937 random(17);
  std::normal_distribution<T> normal(0, 3);
  for (int i = 0; i < 10000; ++i) {
    const T x = normal(random);
    ASSERT_EQ(Tanh(-x), -Tanh(x)) << x;
    ASSERT_LE(std::fabs(Tanh(x)), T{1}) << x;
  }
}

TYPED_TEST(MathSpecialTest, Sigmoid) {
  using T = TypeParam;
  EXPECT_EQ(Sigmoid(T{0}), T{0.5});
  EXPECT_EQ(Sigmoid(-T{0}), T{0.5});
  for (T x : {T{800}, this->kMax, this->kInfinity}) {
    EXPECT_EQ(Sigmoid(x), T{1}) << x;
    EXPECT_EQ(Sigmoid(-x), T{0}) << x;
  }
  // Tiny values are those of exp(), down to the smallest subnormal number.
  const T smallest = std::log(this->kTiny);
  EXPECT_EQ(Sigmoid(smallest), this->kTiny);
  EXPECT_EQ(Sigmoid(smallest + T{3}), Exp(smallest + T{3}));
}

TYPED_TEST(MathSpecialTest, FmaRoundsOnce) {
  using T = TypeParam;
  const T epsilon = std::numeric_limits<T>::epsilon();
  // (1 + e)(1 - e) - 1 = -e^2, which rounding the product would lose.
  EXPECT_EQ(Fma(T{1} + epsilon, T{1} - epsilon, T{-1}), -epsilon * epsilon);
}

TYPED_TEST(MathSpecialTest, Sqrt) {
  using T = TypeParam;
  EXPECT_EQ(Sqrt(T{2.25}), T{1.5});
  EXPECT_EQ(Sqrt(T{2}), std::sqrt(T{2}));
  EXPECT_TRUE(std::signbit(Sqrt(-T{0})));
  EXPECT_EQ(Sqrt(this->kInfinity), this->kInfinity);
  EXPECT_TRUE(std::isnan(Sqrt(T{-1})));
}

}  // namespace
}  // namespace d2l::kernels::math
