// Products by cuBLAS, with a library that computes at once, on the CPU.

#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "common/device/backend.h"
#include "common/device/cuda/blas/blas_library.h"
#include "common/device/cuda/blas/cuda_blas.h"
#include "common/device/cuda/cuda_errors.h"
#include "common/device/cuda/cuda_gpu.h"
#include "common/device/cuda/fake/fake_cuda.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/device.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "common/kernels/cuda/fake/reference_gemm.h"
#include "common/kernels/cuda/index/gemm_call.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/tf32.h"
#include "common/tensor/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

// The library below takes this as its handle.
struct FakeBlas {
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  cudaStream_t stream = nullptr;
  std::size_t workspace_bytes = 0;
  int products = 0;
  int batches = 0;  // of these products
  // What the next product returns.
  cublasStatus_t next = CUBLAS_STATUS_SUCCESS;
};

FakeBlas& Of(cublasHandle_t handle) {
  return *reinterpret_cast<FakeBlas*>(handle);
}

template <typename T>
cublasStatus_t Product(cublasHandle_t handle, const T* alpha, const T* beta,
                       GemmCall call) {
  if (*alpha != 1 || (*beta != 0 && *beta != 1)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  call.accumulate = *beta == 1;
  FakeBlas& blas = Of(handle);
  ++blas.products;
  ReferenceGemm<T>(call);
  return std::exchange(blas.next, CUBLAS_STATUS_SUCCESS);
}

template <typename T>
cublasStatus_t One(cublasHandle_t handle, cublasOperation_t a_is,
                   cublasOperation_t b_is, int64_t m, int64_t n, int64_t k,
                   const T* alpha, const T* a, int64_t lda, const T* b,
                   int64_t ldb, const T* beta, T* c, int64_t ldc) {
  return Product(handle, alpha, beta,
                 {a_is == CUBLAS_OP_T, b_is == CUBLAS_OP_T, m, n, k, a, lda, b,
                  ldb, c, ldc, 1, 0, 0, 0});
}

template <typename T>
cublasStatus_t Several(cublasHandle_t handle, cublasOperation_t a_is,
                       cublasOperation_t b_is, int64_t m, int64_t n, int64_t k,
                       const T* alpha, const T* a, int64_t lda,
                       long long a_stride, const T* b, int64_t ldb,
                       long long b_stride, const T* beta, T* c, int64_t ldc,
                       long long c_stride, int64_t batch) {
  ++Of(handle).batches;
  return Product(handle, alpha, beta,
                 {a_is == CUBLAS_OP_T, b_is == CUBLAS_OP_T, m, n, k, a, lda, b,
                  ldb, c, ldc, batch, a_stride, b_stride, c_stride});
}

BlasLibrary FakeLibrary() {
  BlasLibrary blas = {};
  blas.create = [](cublasHandle_t* handle) {
    *handle = reinterpret_cast<cublasHandle_t>(new FakeBlas);
    return CUBLAS_STATUS_SUCCESS;
  };
  blas.destroy = [](cublasHandle_t handle) {
    delete &Of(handle);
    return CUBLAS_STATUS_SUCCESS;
  };
  blas.set_stream = [](cublasHandle_t handle, cudaStream_t stream) {
    Of(handle).stream = stream;
    Of(handle).workspace_bytes = 0;  // as in cuBLAS
    return CUBLAS_STATUS_SUCCESS;
  };
  blas.set_workspace = [](cublasHandle_t handle, void*, std::size_t bytes) {
    Of(handle).workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
  };
  blas.set_math_mode = [](cublasHandle_t handle, cublasMath_t mode) {
    Of(handle).math_mode = mode;
    return CUBLAS_STATUS_SUCCESS;
  };
  blas.status_name = [](cublasStatus_t) { return "FAKE_STATUS"; };
  blas.status_string = [](cublasStatus_t) { return "as was asked for"; };
  blas.sgemm = One<float>;
  blas.dgemm = One<double>;
  blas.sgemm_batched = Several<float>;
  blas.dgemm_batched = Several<double>;
  return blas;
}

class BlasGemmTest : public testing::Test {
 protected:
  BlasGemmTest() {
    ReplaceBlasForTesting(&fake_);
    MakeStream("sm_90");
  }
  ~BlasGemmTest() override {
    SetAllowTf32(false);
    stream_.reset();
    ReplaceBlasForTesting(nullptr);
  }

  // Makes the stream one of a GPU of this kind.
  void MakeStream(const char* capability) {
    stream_.reset();
    gpus_.push_back(std::make_unique<CudaGpu>(cuda_, 0, capability, 4,
                                              std::vector<int>{900}));
    stream_ = std::make_unique<CudaStream>(
        *gpus_.back(), Device(DeviceType::kCuda, 0), 0, StreamOptions());
  }

  void Launch(DType dtype, const GemmCall& call) {
    stream_->Launch(OpLabel("matmul"), [&](const CudaLaunch& launch) {
      LaunchBlasGemm(launch, dtype, call);
    });
  }

  FakeBlas& Fake() {
    FakeBlas* fake = nullptr;
    stream_->Launch(OpLabel("look"), [&](const CudaLaunch& launch) {
      fake = reinterpret_cast<FakeBlas*>(BlasOf(launch));
    });
    return *fake;
  }

  FakeCuda cuda_;
  const BlasLibrary fake_ = FakeLibrary();
  std::vector<std::unique_ptr<CudaGpu>> gpus_;
  std::unique_ptr<CudaStream> stream_;
};

// (5, 3) times (3, 4), with room between the columns and between the matrices.
template <typename T>
GemmCall Call(const std::vector<T>& a, const std::vector<T>& b,
              std::vector<T>* c, std::int64_t batch) {
  return {false, true,      5, 4,     3,  a.data(), 6, b.data(),
          7,     c->data(), 8, batch, 20, 30,       40};
}

template <typename T, typename Launch>
void ExpectProducts(const FakeBlas& fake, const Launch& launch) {
  std::mt19937 random(5);
  std::vector<T> a(100), b(100);
  for (T& x : a) x = static_cast<T>(random() % 19) - 9;
  for (T& x : b) x = static_cast<T>(random() % 19) - 9;
  for (const std::int64_t batch : {1, 3}) {
    const FakeBlas before = fake;
    std::vector<T> c(200, 99), expected(200, 99);
    launch(Call(a, b, &c, batch));
    ReferenceGemm<T>(Call(a, b, &expected, batch));
    EXPECT_EQ(c, expected);
    EXPECT_EQ(fake.products, before.products + 1);
    EXPECT_EQ(fake.batches, before.batches + (batch > 1 ? 1 : 0));
    GemmCall more = Call(a, b, &c, batch);
    more.accumulate = true;
    launch(more);
    for (T& x : expected) x = x == 99 ? x : 2 * x;
    EXPECT_EQ(c, expected);
  }
}

TEST_F(BlasGemmTest, AsksForTheProduct) {
  ExpectProducts<float>(
      Fake(), [this](const GemmCall& call) { Launch(DType::kFloat32, call); });
  ExpectProducts<double>(
      Fake(), [this](const GemmCall& call) { Launch(DType::kFloat64, call); });
}

TEST_F(BlasGemmTest, HasItsStreamAndAWorkspace) {
  const FakeBlas& fake = Fake();
  EXPECT_NE(fake.stream, nullptr);
  EXPECT_EQ(fake.workspace_bytes, std::size_t{32} << 20);
  EXPECT_EQ(&Fake(), &fake) << "one for each stream";
}

TEST_F(BlasGemmTest, TheWorkspaceIsLargeFromHopperOn) {
  for (const char* const large : {"sm_90", "sm_100", "sm_120"}) {
    MakeStream(large);
    EXPECT_EQ(Fake().workspace_bytes, std::size_t{32} << 20) << large;
  }
  for (const char* const small : {"sm_75", "sm_89", ""}) {
    MakeStream(small);
    EXPECT_EQ(Fake().workspace_bytes, std::size_t{4} << 20) << small;
  }
}

TEST_F(BlasGemmTest, AWorkspaceThatCudaDoesNotGiveIsTheOperationsFailure) {
  cuda_.FailNext("Allocate", kCudaIllegalAddress);
  try {
    Fake();
    FAIL() << "nothing thrown";
  } catch (const AsyncError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cudaErrorIllegalAddress"));
  }
  EXPECT_NE(Fake().workspace_bytes, 0u) << "the next attempt";
}

TEST_F(BlasGemmTest, UsesTf32OnlyIfAllowed) {
  const std::vector<float> a(100), b(100);
  std::vector<float> c(200);
  const GemmCall call = Call(a, b, &c, 1);
  Launch(DType::kFloat32, call);
  EXPECT_EQ(Fake().math_mode, CUBLAS_DEFAULT_MATH);
  SetAllowTf32(true);
  Launch(DType::kFloat32, call);
  EXPECT_EQ(Fake().math_mode, CUBLAS_TF32_TENSOR_OP_MATH);
  SetAllowTf32(false);
  Launch(DType::kFloat32, call);
  EXPECT_EQ(Fake().math_mode, CUBLAS_DEFAULT_MATH);
}

TEST_F(BlasGemmTest, ARefusalIsTheOperationsFailure) {
  const std::vector<float> a(100), b(100);
  std::vector<float> c(200);
  Fake().next = CUBLAS_STATUS_EXECUTION_FAILED;
  try {
    Launch(DType::kFloat32, Call(a, b, &c, 1));
    FAIL() << "nothing thrown";
  } catch (const AsyncError& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("cuBLAS: FAKE_STATUS: as was asked for"));
  }
  Launch(DType::kFloat32, Call(a, b, &c, 1));  // the stream goes on
}

}  // namespace
}  // namespace d2l::kernels::cuda
