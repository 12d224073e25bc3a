#include "common/kernels/cuda/index/divider.h"

#include <cstdint>
#include <random>

#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

constexpr std::uint32_t kEnd = std::uint32_t{1} << 31;

void Check(std::uint32_t n, std::uint32_t d) {
  if (n < kEnd) {
    ASSERT_EQ(Divider(d).Quotient(n), n / d) << n << " / " << d;
  }
}

TEST(DividerTest, DividesByOneIfNothingIsSaid) {
  EXPECT_EQ(Divider().divisor(), 1u);
  EXPECT_EQ(Divider().Quotient(kEnd - 1), kEnd - 1);
}

TEST(DividerTest, AllSmallNumbersBySmallDivisors) {
  for (std::uint32_t d = 1; d <= 1100; ++d) {
    const Divider divider(d);
    ASSERT_EQ(divider.divisor(), d);
    for (std::uint32_t n = 0; n <= 4000; ++n) {
      ASSERT_EQ(divider.Quotient(n), n / d) << n << " / " << d;
    }
  }
}

// A wrong multiplier is first wrong where the quotient changes.
TEST(DividerTest, AroundMultiples) {
  std::mt19937 random(7);
  for (int i = 0; i < 200000; ++i) {
    const std::uint32_t d = (random() >> 1 >> random() % 31) + 1;
    const std::uint32_t multiple = random() % (kEnd / d + 1) * d;
    Check(multiple, d);
    Check(multiple - 1, d);
    Check(multiple + d - 1, d);
    Check(kEnd - 1, d);
    Check(random() >> 1, d);
  }
}

TEST(DividerTest, AroundPowersOfTwo) {
  for (int i = 0; i <= 31; ++i) {
    for (int j = 0; j <= 31; ++j) {
      for (int di = -2; di <= 2; ++di) {
        for (int dj = -2; dj <= 2; ++dj) {
          const std::int64_t n = (std::int64_t{1} << i) + di;
          const std::int64_t d = (std::int64_t{1} << j) + dj;
          if (n < 0 || d < 1 || d > kEnd) continue;
          Check(static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(d));
        }
      }
    }
  }
}

}  // namespace
}  // namespace d2l::kernels::cuda
