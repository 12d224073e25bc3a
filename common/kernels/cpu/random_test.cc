#include "common/kernels/cpu/random.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/kernels/cpu/targets.h"
#include "common/kernels/philox.h"
#include "common/tensor/dtype.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {
namespace {

// The obvious loop.
template <typename T, void (*kTransform)(const PhiloxBlock&, T*)>
std::vector<T> Reference(std::int64_t n, std::uint64_t seed,
                         std::uint64_t offset) {
  std::vector<T> out;
  for (std::int64_t i = 0; i < n; ++i) {
    T block[kElementsPerBlock<T>];
    kTransform(Philox(seed, offset + i / kElementsPerBlock<T>), block);
    out.push_back(block[i % kElementsPerBlock<T>]);
  }
  return out;
}

constexpr std::int64_t kAny = 0;  // FillRandom does not read it

template <typename T>
void IntegerFill(T* out, std::int64_t begin, std::int64_t end, std::int64_t low,
                 std::uint64_t range, std::uint64_t seed,
                 std::uint64_t offset) {
  FillRandom({RandomOp::kInteger,
              DTypeOf<T>::value,
              kAny,
              out,
              {seed, offset},
              low,
              range},
             begin, end);
}

// How many elements differ in any bit.
template <typename T>
std::int64_t Differences(const std::vector<T>& a, const std::vector<T>& b) {
  EXPECT_EQ(a.size(), b.size());
  std::int64_t count = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    count += std::memcmp(&a[i], &b[i], sizeof(T)) != 0;
  }
  return count;
}

template <typename T>
struct Uniform {
  using Type = T;
  static constexpr bool kIsNormal = false;
  static constexpr double kTolerance = 0;
  static void Fill(T* out, std::int64_t begin, std::int64_t end,
                   std::uint64_t seed, std::uint64_t offset) {
    FillRandom({RandomOp::kUniform,
                DTypeOf<T>::value,
                kAny,
                out,
                {seed, offset},
                0,
                1},
               begin, end);
  }
  static std::vector<T> Expected(std::int64_t n, std::uint64_t seed,
                                 std::uint64_t offset) {
    return Reference<T, Uniforms>(n, seed, offset);
  }
  static double Standardised(double x) { return (x - 0.5) * std::sqrt(12.0); }
  static double Cdf(double x) { return x; }
  static double Moment(int k) {  // of the standardised variable, k even
    return std::pow(3.0, k / 2) / (k + 1);
  }
};

template <typename T>
struct Normal {
  using Type = T;
  static constexpr bool kIsNormal = true;
  // For targets without fused operations; random.h states the tolerance.
  static constexpr double kTolerance = sizeof(T) == 4 ? 4e-6 : 1e-14;
  static void Fill(T* out, std::int64_t begin, std::int64_t end,
                   std::uint64_t seed, std::uint64_t offset) {
    FillRandom(
        {RandomOp::kNormal, DTypeOf<T>::value, kAny, out, {seed, offset}, 0, 1},
        begin, end);
  }
  static std::vector<T> Expected(std::int64_t n, std::uint64_t seed,
                                 std::uint64_t offset) {
    return Reference<T, Normals>(n, seed, offset);
  }
  static double Standardised(double x) { return x; }
  static double Cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
  static double Moment(int k) { return k == 0 ? 1 : (k - 1) * Moment(k - 2); }
};

template <class Kind>
class RandomTest : public testing::Test {
 public:
  using T = typename Kind::Type;

  static std::vector<T> Draw(std::int64_t n, std::uint64_t seed,
                             std::uint64_t offset) {
    std::vector<T> out(static_cast<std::size_t>(n), T{-99});
    Kind::Fill(out.data(), 0, n, seed, offset);
    return out;
  }
};

using Kinds = testing::Types<Uniform<float>, Uniform<double>, Normal<float>,
                             Normal<double>>;
TYPED_TEST_SUITE(RandomTest, Kinds);

TYPED_TEST(RandomTest, EveryTargetAgreesWithTheReference) {
  using T = typename TypeParam::Type;
  struct Call {
    std::int64_t n;
    std::uint64_t seed, offset;
  };
  const Call calls[] = {
      {100'003, 42, 0},
      {1'001, 0, 0xFFFFFFF0},  // carries into the high word
      {1'001, 0xFEDCBA9876543210, 0xFFFFFFFFFFFFFFF0},  // wraps around
      {37, 0xFFFFFFFFFFFFFFFF, 0x123456789ABCDEF},
  };
  for (const Call& call : calls) {
    const std::vector<T> expected =
        TypeParam::Expected(call.n, call.seed, call.offset);
    for (const std::int64_t target : Targets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      const ScopedTarget scope(target);
      const std::vector<T> actual = this->Draw(call.n, call.seed, call.offset);
      if (!TypeParam::kIsNormal || Fuses(target)) {
        EXPECT_EQ(Differences(actual, expected), 0);
        continue;
      }
      double worst = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        worst = std::max<double>(worst, std::fabs(actual[i] - expected[i]));
      }
      EXPECT_LE(worst, TypeParam::kTolerance);
    }
  }
}

TYPED_TEST(RandomTest, AnySplitGivesTheSameBitsAndWritesNothingElse) {
  using T = typename TypeParam::Type;
  std::mt19937_64 random(5);
  for (const std::int64_t target : Targets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    const ScopedTarget scope(target);
    for (int repeat = 0; repeat < 200; ++repeat) {
      const auto n = static_cast<std::int64_t>(random() % 300);
      const std::uint64_t seed = random(), offset = random();
      const std::vector<T> expected = this->Draw(n, seed, offset);
      std::vector<std::int64_t> cuts = {0, n};
      for (std::uint64_t c = random() % 8; c > 0; --c) {
        cuts.push_back(static_cast<std::int64_t>(random() % (n + 1)));
      }
      std::sort(cuts.begin(), cuts.end());
      // The parts are in any order, the array at any address that T allows; the
      // guard is 77 before, between and after the parts.
      const std::size_t shift = random() % 16;
      std::vector<T> memory(static_cast<std::size_t>(n) + shift + 64, T{77});
      T* out = memory.data() + shift;
      std::vector<std::size_t> order(cuts.size() - 1);
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      std::vector<T> model = memory;
      for (const std::size_t piece : order) {
        TypeParam::Fill(out, cuts[piece], cuts[piece + 1], seed, offset);
        std::copy(
            expected.begin() + cuts[piece], expected.begin() + cuts[piece + 1],
            model.begin() + static_cast<std::int64_t>(shift) + cuts[piece]);
        ASSERT_EQ(Differences(memory, model), 0) << n << " " << cuts[piece];
      }
    }
  }
}

// Large enough for code that treats large arrays differently.
TYPED_TEST(RandomTest, WorkersGiveTheSameBitsWhateverTheirNumber) {
  using T = typename TypeParam::Type;
  constexpr std::int64_t kN = 3'000'001;
  const std::vector<T> expected = this->Draw(kN, 6, 7);
  for (const int workers : {2, 7}) {
    std::vector<T> out(kN);
    std::vector<std::thread> threads;
    for (int w = 0; w < workers; ++w) {
      threads.emplace_back([&out, w, workers] {
        TypeParam::Fill(out.data(), kN * w / workers, kN * (w + 1) / workers, 6,
                        7);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(Differences(out, expected), 0) << workers;
  }
}

TYPED_TEST(RandomTest, LargeCallsAgreeWithSmallOnesAtAnyAddress) {
  using T = typename TypeParam::Type;
  constexpr std::int64_t kN = 2'000'003;
  for (const std::int64_t target : Targets()) {
    if (target == HWY_STATIC_TARGET) continue;  // treats all sizes alike
    SCOPED_TRACE(hwy::TargetName(target));
    const ScopedTarget scope(target);
    std::vector<T> expected(kN);
    for (std::int64_t i = 0; i < kN; i += 1000) {
      TypeParam::Fill(expected.data(), i, std::min(kN, i + 1000), 8, 9);
    }
    for (const int shift : {0, 1, 4}) {
      std::vector<T> memory(kN + 8);
      TypeParam::Fill(memory.data() + shift, 0, 5, 8, 9);
      TypeParam::Fill(memory.data() + shift, 5, kN, 8, 9);
      const std::vector<T> actual(memory.begin() + shift,
                                  memory.begin() + shift + kN);
      EXPECT_EQ(Differences(actual, expected), 0) << shift;
    }
  }
}

TYPED_TEST(RandomTest, EmptyRangesWriteNothing) {
  using T = typename TypeParam::Type;
  T out[2] = {1, 2};
  TypeParam::Fill(out, 0, 0, 1, 1);
  TypeParam::Fill(out, 1, 1, 1, 1);
  TypeParam::Fill(out, 1, 0, 1, 1);
  TypeParam::Fill(nullptr, 0, 0, 1, 1);
  EXPECT_EQ(out[0], T{1});
  EXPECT_EQ(out[1], T{2});
}

// The next call continues where this call ended: the purpose of the offset.
TYPED_TEST(RandomTest, CallsOneAfterTheOtherAreOneStream) {
  using T = typename TypeParam::Type;
  const std::vector<T> all = this->Draw(1000, 3, 10);
  const std::vector<T> rest = this->Draw(600, 3, 10 + RandomBlocks<T>(400));
  EXPECT_EQ(Differences(rest, std::vector<T>(all.begin() + 400, all.end())), 0);
}

// The statistics below have fixed seeds, so they always pass or always fail;
// the bounds are five standard errors, or as unlikely.

constexpr std::int64_t kSample = 1 << 20;

TYPED_TEST(RandomTest, MomentsAreRight) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    double sum[5] = {};
    for (const auto x : this->Draw(kSample, seed, 0)) {
      const double z = TypeParam::Standardised(x);
      sum[1] += z;
      sum[2] += z * z;
      sum[3] += z * z * z;
      sum[4] += z * z * z * z;
    }
    for (int k = 1; k <= 4; ++k) {  // mean, variance, skewness, kurtosis
      const double expected = k % 2 == 0 ? TypeParam::Moment(k) : 0;
      const double variance = TypeParam::Moment(2 * k) - expected * expected;
      EXPECT_NEAR(sum[k] / kSample, expected, 5 * std::sqrt(variance / kSample))
          << k;
    }
  }
}

TYPED_TEST(RandomTest, PassesKolmogorovAndSmirnovsTest) {
  using T = typename TypeParam::Type;
  for (const std::uint64_t seed : {4, 5, 6}) {
    std::vector<T> sample = this->Draw(kSample, seed, 1'000'000);
    std::sort(sample.begin(), sample.end());
    double distance = 0;
    for (std::int64_t i = 0; i < kSample; ++i) {
      const double cdf = TypeParam::Cdf(sample[static_cast<std::size_t>(i)]);
      distance = std::max({distance, cdf - static_cast<double>(i) / kSample,
                           static_cast<double>(i + 1) / kSample - cdf});
    }
    // The limit distribution exceeds 2.2 with probability 1.3e-4.
    EXPECT_LE(distance * std::sqrt(static_cast<double>(kSample)), 2.2);
  }
}

// The correlation of a[i] and b[i + lag], and that of their squares, is within
// five standard errors of zero.
template <class Kind, typename T = typename Kind::Type>
void ExpectUncorrelated(const std::vector<T>& a, const std::vector<T>& b,
                        std::size_t lag = 0) {
  const std::size_t n = a.size() - lag;
  double sum = 0, sum_of_squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = Kind::Standardised(a[i]);
    const double y = Kind::Standardised(b[i + lag]);
    sum += x * y;
    sum_of_squares += (x * x - 1) * (y * y - 1);
  }
  const double bound = 5 * std::sqrt(static_cast<double>(n));
  EXPECT_LE(std::fabs(sum), bound) << lag;
  EXPECT_LE(std::fabs(sum_of_squares), bound * (Kind::Moment(4) - 1)) << lag;
}

TYPED_TEST(RandomTest, NeighboursAreUncorrelated) {
  const auto x = this->Draw(kSample, 7, 0);
  for (const std::size_t lag : {1, 2, 3, 4, 5, 8, 16, 31, 32, 33}) {
    ExpectUncorrelated<TypeParam>(x, x, lag);
  }
}

TYPED_TEST(RandomTest, StreamsAreUncorrelated) {
  const auto x = this->Draw(kSample, 8, 0);
  for (const std::uint64_t seed : {std::uint64_t{9}, std::uint64_t{8} << 32}) {
    ExpectUncorrelated<TypeParam>(x, this->Draw(kSample, seed, 0));
  }
  for (const std::uint64_t offset :
       {std::uint64_t{kSample}, std::uint64_t{1} << 32}) {
    ExpectUncorrelated<TypeParam>(x, this->Draw(kSample, 8, offset));
  }
}

// ---- Whole numbers.

constexpr std::uint64_t kTwo32 = std::uint64_t{1} << 32;
constexpr std::uint64_t kTwo64Less1 = 0xFFFFFFFFFFFFFFFF;

// Element i according to random.h.
template <typename T>
T IntegerAt(std::int64_t i, std::int64_t low, std::uint64_t range,
            std::uint64_t seed, std::uint64_t offset) {
  __extension__ using Wide = unsigned __int128;
  std::uint64_t k;
  if (range <= kTwo32) {
    const PhiloxBlock block = Philox(seed, offset + i / 4);
    k = static_cast<std::uint64_t>(Wide{block.word[i % 4]} * range >> 32);
  } else {
    const PhiloxBlock block = Philox(seed, offset + i / 2);
    const std::uint64_t u =
        std::uint64_t{block.word[i % 2 * 2]} << 32 | block.word[i % 2 * 2 + 1];
    k = static_cast<std::uint64_t>(Wide{u} * range >> 64);
  }
  return static_cast<T>(
      static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + k));
}

template <typename T>
std::vector<T> Integers(std::int64_t n, std::int64_t low, std::uint64_t range,
                        std::uint64_t seed, std::uint64_t offset) {
  std::vector<T> out(static_cast<std::size_t>(n), T{99});
  IntegerFill(out.data(), 0, n, low, range, seed, offset);
  return out;
}

template <typename T>
class IntegerTest : public testing::Test {};

using IntegerTypes = testing::Types<float, double, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(IntegerTest, IntegerTypes);

TYPED_TEST(IntegerTest, EveryTargetAgreesWithTheReference) {
  constexpr std::int64_t kN = 2'503;
  constexpr std::uint64_t kSeed = 0xFEDCBA9876543210;
  const std::uint64_t ranges[] = {1,
                                  2,
                                  6,
                                  256,
                                  1'000'003,
                                  kTwo32 - 1,
                                  kTwo32,
                                  kTwo32 + 1,
                                  kTwo32 * 300 + 7,
                                  kTwo64Less1 / 2 + 1,
                                  kTwo64Less1};
  for (const std::uint64_t range : ranges) {
    for (const std::int64_t low : {std::int64_t{0}, std::int64_t{-5},
                                   std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max()}) {
      for (const std::uint64_t offset :
           {std::uint64_t{7}, std::uint64_t{0xFFFFFFF0}, kTwo64Less1 - 15}) {
        std::vector<TypeParam> expected;
        for (std::int64_t i = 0; i < kN; ++i) {
          expected.push_back(
              IntegerAt<TypeParam>(i, low, range, kSeed, offset));
        }
        for (const std::int64_t target : Targets()) {
          SCOPED_TRACE(testing::Message() << hwy::TargetName(target) << " "
                                          << low << " + " << range);
          const ScopedTarget scope(target);
          EXPECT_EQ(
              Differences(Integers<TypeParam>(kN, low, range, kSeed, offset),
                          expected),
              0);
        }
      }
    }
  }
}

TYPED_TEST(IntegerTest, AnySplitGivesTheSameBits) {
  constexpr std::int64_t kN = 5'000;
  constexpr TypeParam kGuard{77};
  std::mt19937 random(1);
  for (const std::uint64_t range : {std::uint64_t{100}, kTwo32 * 5}) {
    const std::vector<TypeParam> expected =
        Integers<TypeParam>(kN, -10, range, 3, 9);
    for (int round = 0; round < 50; ++round) {
      // Not aligned, with a guard at each end of a part.
      std::vector<TypeParam> out(kN + 3, kGuard);
      TypeParam* const start = out.data() + 1 + round % 2;
      std::vector<std::int64_t> cuts = {0, kN};
      for (int i = 0; i < 6; ++i) cuts.push_back(random() % (kN + 1));
      std::sort(cuts.begin(), cuts.end());
      for (std::size_t i = cuts.size() - 1; i > 0; --i) {
        const std::int64_t begin = cuts[i - 1], end = cuts[i];
        IntegerFill(start, begin, end, -10, range, 3, 9);
        EXPECT_EQ(start[begin - 1], kGuard);
      }
      EXPECT_EQ(start[kN], kGuard);
      EXPECT_EQ(std::vector<TypeParam>(start, start + kN), expected);
    }
    std::vector<TypeParam> out(3, kGuard);
    IntegerFill(out.data(), 2, 2, 0, range, 3, 9);
    IntegerFill(out.data(), 2, 1, 0, range, 3, 9);
    EXPECT_EQ(out, std::vector<TypeParam>(3, kGuard));
  }
}

TEST(IntegerDistributionTest, EachNumberIsAsLikely) {
  constexpr int kBins = 12;
  constexpr std::int64_t kN = 1'200'000;
  struct Case {
    std::int64_t low;
    std::uint64_t range;  // a multiple of kBins
  };
  const Case cases[] = {
      {0, kBins},
      {-6, kBins},
      {1'000, 1'200},
      {0, kTwo32 / kBins * kBins},
      {5, kTwo32 / 2 * 3},
      {std::numeric_limits<std::int64_t>::min(), kTwo64Less1 / kBins * kBins}};
  for (const auto& [low, range] : cases) {
    SCOPED_TRACE(range);
    const std::vector<std::int64_t> drawn =
        Integers<std::int64_t>(kN, low, range, 2024, 0);
    double bins[kBins] = {};
    for (const std::int64_t value : drawn) {
      const std::uint64_t k =
          static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(low);
      ASSERT_LT(k, range);
      ++bins[k / (range / kBins)];
    }
    double chi_square = 0;
    for (const double count : bins) {
      const double expected = static_cast<double>(kN) / kBins;
      chi_square += (count - expected) * (count - expected) / expected;
    }
    // 11 degrees of freedom: a sum above this bound occurs once in a million
    // times, and one below 0.4, from numbers that are too even, as rarely.
    EXPECT_LT(chi_square, 48.0);
    EXPECT_GT(chi_square, 0.4);
  }
}

TEST(IntegerDistributionTest, ReachesBothEndsAndNoFurther) {
  for (const std::uint64_t range : {1, 2, 3, 100, 256}) {
    const std::vector<std::int64_t> drawn =
        Integers<std::int64_t>(100'000, -50, range, 7, 0);
    EXPECT_EQ(*std::min_element(drawn.begin(), drawn.end()), -50);
    EXPECT_EQ(*std::max_element(drawn.begin(), drawn.end()),
              -51 + static_cast<std::int64_t>(range));
  }
}

}  // namespace
}  // namespace d2l::kernels::cpu
