#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/device/testing/testing.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/kernels.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cpu {
namespace {

// gemm_test.cc tests the product itself.
class MatMulKernelTest : public testing::Test {
 protected:
  void Run(const MatMulArgs& args) {
    Enqueue(static_cast<CpuStream&>(*stream_), OpLabel("matmul"), args);
    stream_->Synchronize();
  }

  template <typename T>
  std::vector<T> Random(std::int64_t n) {
    std::normal_distribution<T> normal;
    std::vector<T> x(static_cast<std::size_t>(n));
    for (T& e : x) e = normal(random_);
    return x;
  }

  // A product of contiguous operands, each of which may be repeated.
  template <typename T>
  void CheckBatch(bool transpose_a, bool transpose_b, std::int64_t m,
                  std::int64_t n, std::int64_t k, std::int64_t batch,
                  bool repeat_a, bool repeat_b) {
    const std::int64_t a_stride = repeat_a ? 0 : m * k;
    const std::int64_t b_stride = repeat_b ? 0 : k * n;
    const std::int64_t c_stride = m * n + (batch > 1 ? 1 : 0);
    const std::vector<T> a = Random<T>(repeat_a ? m * k : batch * m * k);
    const std::vector<T> b = Random<T>(repeat_b ? k * n : batch * k * n);
    CheckAgainstLoops(transpose_a, transpose_b, m, n, k, batch, a, a_stride, b,
                      b_stride, c_stride);
    CheckAgainstLoops(transpose_a, transpose_b, m, n, k, batch, a, a_stride, b,
                      b_stride, m * n);
  }

  template <typename T>
  void CheckAgainstLoops(bool transpose_a, bool transpose_b, std::int64_t m,
                         std::int64_t n, std::int64_t k, std::int64_t batch,
                         const std::vector<T>& a, std::int64_t a_stride,
                         const std::vector<T>& b, std::int64_t b_stride,
                         std::int64_t c_stride) {
    constexpr T kGuard = T(-12345);
    const std::size_t c_size = static_cast<std::size_t>(batch * c_stride);
    std::vector<T> c(c_size + 1, kGuard);
    for (std::int64_t s = 0; s < batch; ++s) {
      for (std::int64_t i = 0; i < m * n; ++i) {
        c[static_cast<std::size_t>(s * c_stride + i)] =
            std::numeric_limits<T>::quiet_NaN();
      }
    }
    Run({sizeof(T) == 8 ? DType::kFloat64 : DType::kFloat32, transpose_a,
         transpose_b, m, n, k, a.data(), transpose_a ? m : k, b.data(),
         transpose_b ? k : n, c.data(), n, batch, a_stride, b_stride,
         c_stride});
    for (std::int64_t s = 0; s < batch; ++s) {
      const T* as = a.data() + s * a_stride;
      const T* bs = b.data() + s * b_stride;
      const T* cs = c.data() + s * c_stride;
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0, magnitude = 0;
          for (std::int64_t p = 0; p < k; ++p) {
            const double product =
                static_cast<double>(transpose_a ? as[p * m + i]
                                                : as[i * k + p]) *
                (transpose_b ? bs[j * k + p] : bs[p * n + j]);
            sum += product;
            magnitude += std::abs(product);
          }
          ASSERT_LE(std::abs(cs[i * n + j] - sum),
                    magnitude * std::numeric_limits<T>::epsilon() *
                        (2 + std::sqrt(static_cast<double>(k))))
              << s << ": " << i << ", " << j;
        }
      }
      for (std::int64_t i = m * n; i < c_stride; ++i) ASSERT_EQ(cs[i], kGuard);
    }
    ASSERT_EQ(c.back(), kGuard);
  }

  const std::unique_ptr<Stream> stream_ =
      MakeStream(Device(DeviceType::kCpu, 0));
  std::mt19937 random_{11};
};

TEST_F(MatMulKernelTest, OneProductInEachForm) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      // The second is cut by rows where there are several cores, the third by
      // columns.
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{3, 4, 5},
                                    {301, 97, 101},
                                    {97, 301, 101}}) {
        CheckBatch<float>(transpose_a, transpose_b, m, n, k, 1, false, false);
        CheckBatch<double>(transpose_a, transpose_b, m, n, k, 1, false, false);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(MatMulKernelTest, Batches) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const bool repeat_a : {false, true}) {
        for (const bool repeat_b : {false, true}) {
          CheckBatch<float>(transpose_a, transpose_b, 5, 7, 3, 9, repeat_a,
                            repeat_b);
          CheckBatch<double>(transpose_a, transpose_b, 33, 31, 32, 64, repeat_a,
                             repeat_b);
          CheckBatch<float>(transpose_a, transpose_b, 100, 90, 110, 2, repeat_a,
                            repeat_b);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(MatMulKernelTest, EmptySides) {
  for (const std::int64_t batch : {0, 1, 3}) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const std::int64_t m : {0, 1, 3, 40}) {
          for (const std::int64_t n : {0, 1, 3, 60}) {
            for (const std::int64_t k : {0, 1, 40}) {
              if (batch * m * n * k != 0) continue;
              CheckBatch<float>(transpose_a, transpose_b, m, n, k, batch, false,
                                false);
              CheckBatch<double>(transpose_a, transpose_b, m, n, k, batch, true,
                                 true);
            }
          }
        }
      }
    }
  }
}

// Sides beyond 32 bits are not cut short.
TEST_F(MatMulKernelTest, HugeEmptySides) {
  const std::int64_t huge = (std::int64_t{1} << 32) + 1;
  float c = 7;
  Run({DType::kFloat32, false, false, huge, 0, 1, nullptr, 1, nullptr, 1, &c,
       1});
  Run({DType::kFloat32, false, false, 0, huge, huge, nullptr, huge, nullptr,
       huge, &c, huge});
  EXPECT_EQ(c, 7);
}

TEST_F(MatMulKernelTest, AVeryLongLeadingDimension) {
  const float a = 3, b = 5;
  float c = 0;
  const std::int64_t huge = (std::int64_t{1} << 32) + 1;
  Run({DType::kFloat32, false, false, 1, 1, 1, &a, huge, &b, huge, &c, huge});
  EXPECT_EQ(c, 15);
}

}  // namespace
}  // namespace d2l::kernels::cpu
