#include "chapters/profiling/ladders/product_ladder.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace d2l::profiling {
namespace {

// Small integers, whose sums are exact in any order.
std::vector<float> Integers(std::int64_t n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  std::uint32_t state = 1;
  for (float& e : x) {
    state = state * 1664525u + 1013904223u;
    e = static_cast<float>(state >> 28) - 7;
  }
  return x;
}

class ProductLadderTest : public testing::TestWithParam<ProductStep> {};

TEST_P(ProductLadderTest, IsTheSumOfProducts) {
  for (const std::int64_t m : {0, 1, 5, 6, 7, 67}) {
    for (const std::int64_t n : {0, 1, 15, 16, 17, 259}) {
      for (const std::int64_t k : {0, 1, 63, 64, 65, 130}) {
        const std::vector<float> a = Integers(m * k), b = Integers(k * n);
        std::vector<float> c(static_cast<std::size_t>(m * n + 1), 12345);
        GetParam().multiply(m, n, k, a.data(), b.data(), c.data());
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t p = 0; p < k; ++p) {
              sum += double{a[static_cast<std::size_t>(i * k + p)]} *
                     b[static_cast<std::size_t>(p * n + j)];
            }
            ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], sum)
                << m << ", " << n << ", " << k << " at " << i << ", " << j;
          }
        }
        ASSERT_EQ(c.back(), 12345) << m << ", " << n << ", " << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProductLadderTest,
                         testing::ValuesIn(ProductSteps()));

}  // namespace
}  // namespace d2l::profiling
