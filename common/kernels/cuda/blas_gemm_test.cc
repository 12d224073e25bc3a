// Products by cuBLAS, with one that runs on the CPU (fake_cublas.h).

#include "common/kernels/cuda/blas_gemm.h"

#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "common/device/backend.h"
#include "common/device/cuda/cuda_blas.h"
#include "common/device/cuda/cuda_gpu.h"
#include "common/device/cuda/cuda_stream.h"
#include "common/device/cuda/fake_cuda.h"
#include "common/device/device.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "common/kernels/cuda/fake_cublas.h"
#include "common/kernels/cuda/gemm_call.h"
#include "common/kernels/cuda/reference_gemm.h"
#include "common/kernels/tf32.h"
#include "common/tensor/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::kernels::cuda {
namespace {

class BlasGemmTest : public testing::Test {
 protected:
  ~BlasGemmTest() override { SetAllowTf32(false); }

  void Launch(DType dtype, const GemmCall& call) {
    stream_.Launch(OpLabel("matmul"), [&](const CudaLaunch& launch) {
      LaunchBlasGemm(launch, dtype, call);
    });
  }

  FakeBlas& Fake() {
    FakeBlas* fake = nullptr;
    stream_.Launch(OpLabel("look"), [&](const CudaLaunch& launch) {
      fake = reinterpret_cast<FakeBlas*>(BlasOf(launch));
    });
    return *fake;
  }

  FakeCuda cuda_;
  CudaGpu gpu_{cuda_, 0, "sm_90", 4, {900}};
  CudaStream stream_{gpu_, Device(DeviceType::kCuda, 0), 0, StreamOptions()};
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
