#include "common/kernels/cpu/matmul/gemm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/targets.h"
#include "gtest/gtest.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {
namespace {

// Runs with each kind of vector that this machine has.
class GemmTest : public testing::TestWithParam<std::int64_t> {
 private:
  const ScopedTarget scope_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(All, GemmTest, testing::ValuesIn(Targets()),
                         [](const testing::TestParamInfo<std::int64_t>& info) {
                           return std::string(hwy::TargetName(info.param));
                         });

template <typename T>
constexpr T kGuard = T(-12345);

struct Case {
  bool transpose_a, transpose_b;
  std::int64_t m, n, k;
  std::int64_t gap;  // between the rows of each matrix

  std::string Text() const {
    return std::to_string(m) + "x" + std::to_string(k) + " times " +
           std::to_string(k) + "x" + std::to_string(n) +
           (transpose_a ? ", a transposed" : "") +
           (transpose_b ? ", b transposed" : "") + ", gap " +
           std::to_string(gap);
  }
};

// The operands of a case, and c. All start at an odd address, as far as T
// allows it. What a product must not read is NaN, what it must not write is
// kGuard.
template <typename T>
class Matrices {
 public:
  explicit Matrices(const Case& c) : case_(c) {
    const std::int64_t a_rows = c.transpose_a ? c.k : c.m;
    const std::int64_t a_columns = c.transpose_a ? c.m : c.k;
    const std::int64_t b_rows = c.transpose_b ? c.n : c.k;
    const std::int64_t b_columns = c.transpose_b ? c.k : c.n;
    lda_ = a_columns + c.gap;
    ldb_ = b_columns + c.gap;
    ldc_ = c.n + c.gap;
    a_ = Random(a_rows, a_columns, lda_);
    b_ = Random(b_rows, b_columns, ldb_);
    c_.assign(Size(c.m * ldc_ + 2), kGuard<T>);
    for (std::int64_t i = 0; i < c.m; ++i) {
      for (std::int64_t j = 0; j < c.n; ++j) {
        this->c(i, j) = std::numeric_limits<T>::quiet_NaN();
      }
    }
  }

  GemmArgs<T> Args() {
    return {case_.transpose_a,
            case_.transpose_b,
            case_.m,
            case_.n,
            case_.k,
            a_.data() + 1,
            lda_,
            b_.data() + 1,
            ldb_,
            c_.data() + 1,
            ldc_};
  }

  T& a(std::int64_t i, std::int64_t p) {
    return a_[Size(1 + (case_.transpose_a ? p * lda_ + i : i * lda_ + p))];
  }
  T& b(std::int64_t p, std::int64_t j) {
    return b_[Size(1 + (case_.transpose_b ? j * ldb_ + p : p * ldb_ + j))];
  }
  T& c(std::int64_t i, std::int64_t j) { return c_[Size(1 + i * ldc_ + j)]; }

  // Compares with the sums in double precision; nothing else may be written.
  void Check() {
    const double epsilon = std::numeric_limits<T>::epsilon();
    for (std::int64_t i = 0; i < case_.m; ++i) {
      for (std::int64_t j = 0; j < case_.n; ++j) {
        double sum = 0, magnitude = 0;
        for (std::int64_t p = 0; p < case_.k; ++p) {
          const double product = static_cast<double>(a(i, p)) * b(p, j);
          sum += product;
          magnitude += std::abs(product);
        }
        const double tolerance =
            epsilon * magnitude * (2 + std::sqrt(static_cast<double>(case_.k)));
        ASSERT_LE(std::abs(c(i, j) - sum), tolerance)
            << case_.Text() << " at " << i << ", " << j << ": " << c(i, j)
            << " for " << sum;
      }
    }
    std::int64_t guards = 0;
    for (const T x : c_) guards += x == kGuard<T> ? 1 : 0;
    ASSERT_EQ(guards, case_.m * case_.gap + 2) << case_.Text();
    ASSERT_EQ(c_.front(), kGuard<T>);
    ASSERT_EQ(c_.back(), kGuard<T>);
  }

  const std::vector<T>& all_of_c() const { return c_; }

  static std::size_t Size(std::int64_t n) {
    return static_cast<std::size_t>(n);
  }

 private:
  std::vector<T> Random(std::int64_t rows, std::int64_t columns,
                        std::int64_t step) {
    std::normal_distribution<T> normal;
    std::vector<T> all(Size(rows * step + 2),
                       std::numeric_limits<T>::quiet_NaN());
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        all[Size(1 + i * step + j)] = normal(random_);
      }
    }
    return all;
  }

  const Case case_;
  std::mt19937 random_{7};
  std::int64_t lda_, ldb_, ldc_;
  std::vector<T> a_, b_, c_;
};

template <typename T>
void CheckCase(const Case& c) {
  Matrices<T> matrices(c);
  GemmArgs<T> args = matrices.Args();
  Gemm<T>(args);
  matrices.Check();
  if (c.k > kGemmDepth) return;
  // The product is one sum, and twice that is exact.
  std::vector<T> twice = matrices.all_of_c();
  for (T& x : twice) x = x == kGuard<T> ? x : 2 * x;
  args.accumulate = true;
  Gemm<T>(args);
  ASSERT_EQ(matrices.all_of_c(), twice) << c.Text();
}

template <typename T>
void CheckForms(std::int64_t m, std::int64_t n, std::int64_t k) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      CheckCase<T>({transpose_a, transpose_b, m, n, k, (m + n + k) % 3});
    }
  }
}

TEST_P(GemmTest, SmallSides) {
  for (const std::int64_t m : {0, 1, 2, 3, 5, 7, 8, 17, 33}) {
    for (const std::int64_t n : {0, 1, 2, 3, 5, 7, 16, 17, 31, 48, 65}) {
      for (const std::int64_t k : {0, 1, 2, 3, 7, 33}) {
        CheckForms<float>(m, n, k);
        CheckForms<double>(m, n, k);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(GemmTest, MixedSides) {
  const std::int64_t sides[] = {1, 16, 31, 64, 65, 100, 129, 257};
  std::mt19937 random(3);
  std::uniform_int_distribution<std::size_t> any(0, std::size(sides) - 1);
  for (int i = 0; i < 6; ++i) {
    const std::int64_t m = sides[any(random)];
    const std::int64_t n = sides[any(random)];
    const std::int64_t k = sides[any(random)];
    CheckForms<float>(m, n, k);
    CheckForms<double>(m, n, k);
    if (HasFatalFailure()) return;
  }
}

// More than one block in each direction.
TEST_P(GemmTest, SeveralBlocks) {
  CheckForms<float>(205, 131, 2 * kGemmDepth + 1);
  CheckForms<float>(29, 1101, kGemmDepth + 5);
  CheckForms<float>(3, 1101, kGemmDepth);
  CheckForms<double>(205, 31, kGemmDepth + 9);
  CheckForms<double>(26, 541, kGemmDepth - 1);
}

// Each element is what gemm.h says, bit for bit.
TEST_P(GemmTest, OrderOfAdditions) {
  // Integers, whose products are exact: then fusing makes no difference.
  const Case c = {false, true, 9, 50, 3 * kGemmDepth - 7, 1};
  Matrices<float> matrices(c);
  std::mt19937 random(5);
  std::uniform_int_distribution<int> integer(-4000, 4000);
  for (std::int64_t p = 0; p < c.k; ++p) {
    for (std::int64_t i = 0; i < c.m; ++i) {
      matrices.a(i, p) = static_cast<float>(integer(random));
    }
    for (std::int64_t j = 0; j < c.n; ++j) {
      matrices.b(p, j) = static_cast<float>(integer(random));
    }
  }
  Gemm<float>(matrices.Args());
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      float total = 0;
      for (std::int64_t p0 = 0; p0 < c.k; p0 += kGemmDepth) {
        float sum = 0;
        for (std::int64_t p = p0; p < std::min(c.k, p0 + kGemmDepth); ++p) {
          sum += matrices.a(i, p) * matrices.b(p, j);
        }
        total += sum;
      }
      ASSERT_EQ(matrices.c(i, j), total) << i << ", " << j;
    }
  }
}

template <typename T>
void CheckSlabs(const Case& c) {
  Matrices<T> whole(c);
  Gemm<T>(whole.Args());
  for (const std::int64_t slabs : {2, 3, 7}) {
    for (const bool by_rows : {false, true}) {
      Matrices<T> cut(c);
      const std::int64_t side = by_rows ? c.m : c.n;
      for (std::int64_t s = 0; s < slabs; ++s) {
        const std::int64_t first = side * s / slabs;
        const std::int64_t size = side * (s + 1) / slabs - first;
        GemmArgs<T> slab = cut.Args();
        if (by_rows) {
          slab.m = size;
          slab.a += first * (c.transpose_a ? 1 : slab.lda);
          slab.c += first * slab.ldc;
        } else {
          slab.n = size;
          slab.b += first * (c.transpose_b ? slab.ldb : 1);
          slab.c += first;
        }
        Gemm<T>(slab);
      }
      ASSERT_EQ(std::memcmp(cut.all_of_c().data(), whole.all_of_c().data(),
                            cut.all_of_c().size() * sizeof(T)),
                0)
          << c.Text() << " in " << slabs << (by_rows ? " rows" : " columns");
    }
  }
}

TEST_P(GemmTest, TheSameBitsInSlabs) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      CheckSlabs<float>({transpose_a, transpose_b, 201, 150, 401, 0});
      CheckSlabs<float>({transpose_a, transpose_b, 20, 19, 18, 1});
      CheckSlabs<double>({transpose_a, transpose_b, 77, 300, 385, 0});
      if (HasFatalFailure()) return;
    }
  }
}

// 0 times infinity is NaN, and neither spreads beyond its row or column.
TEST_P(GemmTest, NanAndInfinity) {
  const float kInfinity = std::numeric_limits<float>::infinity();
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const std::int64_t side : {5, 150}) {
        Matrices<float> matrices(
            {transpose_a, transpose_b, side, side, side, 0});
        for (std::int64_t j = 0; j < side; ++j) matrices.b(2, j) = 1;
        matrices.a(0, 2) = kNan;
        matrices.a(1, 2) = kInfinity;
        matrices.a(2, 2) = 0;
        matrices.b(2, 3) = kInfinity;
        Gemm<float>(matrices.Args());
        for (std::int64_t i = 0; i < side; ++i) {
          for (std::int64_t j = 0; j < side; ++j) {
            const float c = matrices.c(i, j);
            if (i == 0 || (i == 2 && j == 3)) {
              EXPECT_TRUE(std::isnan(c)) << i << ", " << j << ": " << c;
            } else if (i == 1 || j == 3) {
              EXPECT_TRUE(std::isinf(c)) << i << ", " << j << ": " << c;
            } else {
              EXPECT_TRUE(std::isfinite(c)) << i << ", " << j << ": " << c;
            }
          }
        }
      }
    }
  }
}

// The cores of a device share the copy of b: each core, whichever part it
// takes, computes the same bits as one thread.
TEST_P(GemmTest, TheSameBitsOnSeveralCores) {
  ThreadPool pool(3);
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const auto& [m, n, k] :
           {std::array<std::int64_t, 3>{601, 599, 2 * kGemmDepth + 3},
            {150, 801, kGemmDepth + 17},
            {2000, 40, 90}}) {
        const Case c = {transpose_a, transpose_b, m, n, k, 1};
        Matrices<float> alone(c), together(c);
        Gemm<float>(alone.Args());
        internal::current_pool = &pool;
        Gemm<float>(together.Args());
        internal::current_pool = nullptr;
        ASSERT_EQ(
            std::memcmp(alone.all_of_c().data(), together.all_of_c().data(),
                        alone.all_of_c().size() * sizeof(float)),
            0)
            << c.Text();
      }
    }
  }
}

// Empty operands have no memory; a product over nothing is 0.
TEST_P(GemmTest, EmptyOperandsAreNotTouched) {
  for (const bool transpose : {false, true}) {
    for (const std::int64_t m : {0, 1, 20}) {
      for (const std::int64_t n : {0, 1, 20}) {
        for (const std::int64_t k : {0, 1, 20}) {
          if (m * n * k != 0) continue;
          std::vector<float> memory(400, 7), c(Matrices<float>::Size(m * n), 5);
          Gemm<float>({transpose, transpose, m, n, k,
                       m * k == 0 ? nullptr : memory.data(), transpose ? m : k,
                       n * k == 0 ? nullptr : memory.data(), transpose ? k : n,
                       c.empty() ? nullptr : c.data(), n});
          EXPECT_EQ(c, std::vector<float>(c.size(), 0));
        }
      }
    }
  }
}

TEST_P(GemmTest, SeveralThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([] {
      CheckCase<float>({true, true, 65, 129, 70, 1});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace d2l::kernels::cpu
