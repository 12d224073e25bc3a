#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "common/kernels/cpu/matmul/gemm.h"
#include "common/kernels/cpu/targets.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {
namespace {

// The definition in gemm.h, one product at a time; a product and the addition
// that follows round once.
template <typename T>
T InOrder(const T* a, const T* b, std::int64_t k) {
  std::vector<T> parts(kGemvParts<T>, T{0});
  for (std::int64_t p = 0; p < k; ++p) {
    T& part = parts[p % kGemvParts<T>];
    part = std::fma(a[p], b[p], part);
  }
  for (int n = kGemvParts<T> / 2; n > 0; n /= 2) {
    for (int i = 0; i < n; ++i) parts[i] += parts[i + n];
  }
  return parts[0];
}

template <typename T>
double Exact(const T* a, const T* b, std::int64_t k) {
  long double sum = 0;
  for (std::int64_t p = 0; p < k; ++p) {
    sum += static_cast<long double>(a[p]) * b[p];
  }
  return static_cast<double>(sum);
}

template <typename T>
std::vector<T> Random(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0.3, 2);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(normal(generator));
  return values;
}

class GemvTest : public testing::TestWithParam<std::int64_t> {
 protected:
  template <typename T>
  void Check(std::int64_t rows, std::int64_t columns, std::int64_t k) {
    const std::int64_t lda = k + 3, ldb = k + 5;
    const std::vector<T> a = Random<T>(rows * lda + 1, 1);
    const std::vector<T> b = Random<T>(columns * ldb + 1, 2);
    const T nan = std::numeric_limits<T>::quiet_NaN();
    // One in front, one behind, and gaps that stay as they are.
    std::vector<T> c(rows * 2 * columns + 2, nan);
    const GemvArgs<T> args = {rows,         columns, k,     &a[1], lda,
                              b.data() + 1, ldb,     &c[1], 1,     2 * rows};
    Gemv(args, 0, columns);
    std::vector<T> in_parts(c.size(), nan);
    GemvArgs<T> parts = args;
    parts.c = &in_parts[1];
    const std::int64_t cut = columns / 3;
    Gemv(parts, cut, columns);
    Gemv(parts, 0, cut);
    EXPECT_EQ(std::memcmp(c.data(), in_parts.data(), c.size() * sizeof(T)), 0);

    // Highway's own code for one lane rounds twice.
    const bool fuses = Fuses(GetParam()) && GetParam() != HWY_SCALAR;
    std::int64_t written = 0;
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        const T got = c[1 + i + j * 2 * rows];
        const T* x = &a[1] + i * lda;
        const T* y = &b[1] + j * ldb;
        const double tolerance =
            (8 + static_cast<double>(k)) * 20 *
            static_cast<double>(std::numeric_limits<T>::epsilon());
        ASSERT_NEAR(got, Exact(x, y, k), tolerance) << i << ", " << j;
        if (fuses) {
          ASSERT_EQ(got, InOrder(x, y, k)) << i << ", " << j;
        }
        ++written;
      }
    }
    EXPECT_EQ(std::count_if(c.begin(), c.end(),
                            [](T value) { return value == value; }),
              written);
  }

 private:
  const ScopedTarget scope_{GetParam()};
};

TEST_P(GemvTest, AllSizes) {
  for (const std::int64_t rows : {1, 2, 5}) {
    for (const std::int64_t columns : {0, 1, 2, 3, 4, 5, 9, 64}) {
      for (const std::int64_t k : {0, 1, 7, 15, 16, 31, 32, 33, 100, 513}) {
        Check<float>(rows, columns, k);
        Check<double>(rows, columns, k);
      }
    }
  }
}

TEST_P(GemvTest, NanAndInfinity) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  for (const std::int64_t at : {0, 5, 31, 40}) {
    std::vector<double> a(41, 1), b(41, 1);
    a[at] = kInf;
    double c = 0;
    const GemvArgs<double> args = {1,        1,  41, a.data(), 41,
                                   b.data(), 41, &c, 1,        1};
    Gemv(args, 0, 1);
    EXPECT_EQ(c, kInf);
    b[at] = 0;
    Gemv(args, 0, 1);
    EXPECT_TRUE(std::isnan(c)) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GemvTest, testing::ValuesIn(Targets()),
                         [](const auto& info) {
                           return std::string(hwy::TargetName(info.param));
                         });

}  // namespace
}  // namespace d2l::kernels::cpu
