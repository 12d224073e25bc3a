#include "common/kernels/cuda/index/gemm_call.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "common/kernels/cuda/fake/reference_gemm.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

// Computes the product by its definition in kernels.h.
void Expected(const MatMulArgs& args, std::vector<double>* c) {
  const auto* a = static_cast<const double*>(args.a);
  const auto* b = static_cast<const double*>(args.b);
  for (std::int64_t i = 0; i < args.batch; ++i) {
    for (std::int64_t row = 0; row < args.m; ++row) {
      for (std::int64_t column = 0; column < args.n; ++column) {
        double sum = 0;
        for (std::int64_t l = 0; l < args.k; ++l) {
          const double x =
              a[i * args.a_stride +
                (args.transpose_a ? l * args.lda + row : row * args.lda + l)];
          const double y =
              b[i * args.b_stride + (args.transpose_b ? column * args.ldb + l
                                                      : l * args.ldb + column)];
          sum += x * y;
        }
        (*c)[static_cast<std::size_t>(i * args.c_stride + row * args.ldc +
                                      column)] = sum;
      }
    }
  }
}

// Checks the conditions without which BLAS refuses a call.
void CheckLeadingDimensions(const GemmCall& call) {
  EXPECT_GE(call.ld_first,
            std::max<std::int64_t>(1, call.transpose_first ? call.k : call.m));
  EXPECT_GE(call.ld_second,
            std::max<std::int64_t>(1, call.transpose_second ? call.n : call.k));
  EXPECT_GE(call.ld_c, std::max<std::int64_t>(1, call.m));
}

TEST(GemmCallTest, IsTheProductWhateverTheLayout) {
  std::mt19937 random(9);
  const auto below = [&](int n) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
  };
  // Whole numbers: sums are exact in any order.
  std::vector<double> a(4000), b(4000);
  for (double& x : a) x = static_cast<double>(below(19)) - 9;
  for (double& x : b) x = static_cast<double>(below(19)) - 9;
  for (int i = 0; i < 3000; ++i) {
    MatMulArgs args{};
    args.dtype = DType::kFloat64;
    args.transpose_a = below(2) == 1;
    args.transpose_b = below(2) == 1;
    args.m = below(7);
    args.n = below(7);
    args.k = below(7);
    args.batch = 1 + below(4);
    args.a = a.data() + below(3);
    args.b = b.data() + below(3);
    args.lda = (args.transpose_a ? args.m : args.k) + below(2) * below(3);
    args.ldb = (args.transpose_b ? args.k : args.n) + below(2) * below(3);
    args.ldc = args.n + below(2) * below(3);
    args.a_stride = below(2) * (args.transpose_a ? args.k : args.m) * args.lda;
    args.b_stride = below(2) * (args.transpose_b ? args.n : args.k) * args.ldb;
    args.c_stride = args.m * args.ldc + below(2);
    std::vector<double> expected(1000, 99), c(1000, 99);
    args.c = c.data();
    Expected(args, &expected);
    const GemmCall call = MakeGemmCall(Unbatched(args));
    CheckLeadingDimensions(call);
    ReferenceGemm<double>(call);
    ASSERT_EQ(c, expected);
  }
}

TEST(GemmCallTest, OneMatrixForAllOfABatchIsOneProduct) {
  MatMulArgs args{};
  args.m = 5;
  args.n = 3;
  args.k = 4;
  args.lda = 4;
  args.ldb = 3;
  args.ldc = 3;
  args.batch = 7;
  args.a_stride = 20;
  args.b_stride = 0;
  args.c_stride = 15;
  EXPECT_EQ(Unbatched(args).m, 35);
  EXPECT_EQ(Unbatched(args).batch, 1);
  args.b_stride = 12;
  EXPECT_EQ(Unbatched(args).batch, 7);
  args.b_stride = 0;
  args.transpose_a = true;
  EXPECT_EQ(Unbatched(args).batch, 7);
}

TEST(GemmCallTest, WhichProductsAreSmall) {
  const auto small = [](std::int64_t m, std::int64_t n, std::int64_t k,
                        std::int64_t batch) {
    MatMulArgs args{};
    args.m = m;
    args.n = n;
    args.k = k;
    args.batch = batch;
    return IsSmallProduct(args);
  };
  EXPECT_TRUE(small(3, 3, 3, 1));
  EXPECT_TRUE(small(3, 3, 3, 100000));
  EXPECT_TRUE(small(100, 100, 100, 1));
  EXPECT_TRUE(small(128, 128, 128, 1));
  EXPECT_TRUE(small(1000000, 1000000, 0, 1));
  EXPECT_FALSE(small(100, 100, 100, 64));
  EXPECT_FALSE(small(129, 128, 128, 1));
  EXPECT_FALSE(small(128, 128, 129, 1));
  EXPECT_FALSE(small(1, 1, 100003, 1));
  EXPECT_FALSE(small(1000, 1000, 1000, 1));
}

}  // namespace
}  // namespace d2l::kernels::cuda
