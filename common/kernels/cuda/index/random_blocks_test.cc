#include "common/kernels/cuda/index/random_blocks.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "common/kernels/cpu/random.h"
#include "common/kernels/philox.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

constexpr std::uint64_t kSeed = 0x123456789ABCDEF;
// Block indices wrap around within the call.
constexpr std::uint64_t kOffset = ~std::uint64_t{0} - 5;

// n elements, block by block, as the kernel's threads make them.
template <class Numbers>
std::vector<typename Numbers::T> Make(Numbers numbers, std::int64_t n) {
  std::vector<typename Numbers::T> all;
  for (std::int64_t b = 0; static_cast<std::int64_t>(all.size()) < n; ++b) {
    typename Numbers::T made[Numbers::kElements];
    numbers(Philox(kSeed, kOffset + static_cast<std::uint64_t>(b)), made);
    for (const auto x : made) {
      if (static_cast<std::int64_t>(all.size()) < n) all.push_back(x);
    }
  }
  return all;
}

template <typename T>
class RandomBlocksTest : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(RandomBlocksTest, Reals);

TYPED_TEST(RandomBlocksTest, UniformsAreTheCpusBits) {
  for (const std::int64_t n : {0, 1, 3, 4, 5, 1003}) {
    std::vector<TypeParam> cpu(static_cast<std::size_t>(n));
    cpu::UniformFill(cpu.data(), 0, n, kSeed, kOffset);
    EXPECT_EQ(Make(UniformNumbers<TypeParam>(), n), cpu);
  }
}

TYPED_TEST(RandomBlocksTest, NormalsAreTheCpus) {
  const std::int64_t n = 10007;
  std::vector<TypeParam> cpu(static_cast<std::size_t>(n));
  cpu::NormalFill(cpu.data(), 0, n, kSeed, kOffset);
  const std::vector<TypeParam> made = Make(NormalNumbers<TypeParam>(), n);
  // The CPU's bits where it has FMA (cpu/random.h).
  const double most = sizeof(TypeParam) == 4 ? 4e-6 : 1e-14;
  for (std::size_t i = 0; i < made.size(); ++i) {
    ASSERT_NEAR(made[i], cpu[i], most) << i;
  }
}

template <typename T>
void CheckIntegers(std::int64_t low, std::uint64_t range) {
  const std::int64_t n = 1003;
  std::vector<T> cpu(static_cast<std::size_t>(n));
  cpu::IntegerFill(cpu.data(), 0, n, low, range, kSeed, kOffset);
  if (range > std::uint64_t{1} << 32) {
    EXPECT_EQ(Make(IntegerNumbers<T, true>{low, range}, n), cpu) << range;
  } else {
    EXPECT_EQ(Make(IntegerNumbers<T, false>{low, range}, n), cpu) << range;
  }
}

TEST(RandomBlocksTest, IntegersAreTheCpus) {
  for (const std::uint64_t range :
       {std::uint64_t{1}, std::uint64_t{6}, std::uint64_t{255},
        std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 1,
        ~std::uint64_t{0}}) {
    for (const std::int64_t low : {std::int64_t{0}, std::int64_t{-7}}) {
      CheckIntegers<float>(low, range);
      CheckIntegers<double>(low, range);
      CheckIntegers<std::int64_t>(low, range);
      if (low >= 0 && range <= 256) CheckIntegers<std::uint8_t>(low, range);
    }
  }
}

TEST(RandomBlocksTest, MultiplyHighIsTheUpperHalf) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t a = random() >> random() % 64;
    const std::uint64_t b = random() >> random() % 64;
    __extension__ using Wide = unsigned __int128;
    ASSERT_EQ(MultiplyHigh(a, b),
              static_cast<std::uint64_t>(static_cast<Wide>(a) * b >> 64));
  }
}

}  // namespace
}  // namespace d2l::kernels::cuda
