// The matrix products of BLAS, as work of a FakeCuda's stream.

#include <cstdint>

#include "common/device/cuda/fake/fake_backend.h"
#include "common/kernels/cuda/fake/reference_gemm.h"
#include "common/kernels/cuda/launch.h"

namespace d2l {

namespace kernels::cuda {

void LaunchBlasGemm(const CudaLaunch& launch, DType dtype,
                    const GemmCall& call) {
  d2l::internal::long_kernel_launched = true;
  FakeCudaOfBackend().LaunchKernel(launch.stream, [=] {
    if (dtype == DType::kFloat64) {
      ReferenceGemm<double>(call);
    } else {
      ReferenceGemm<float>(call);
    }
  });
}

}  // namespace kernels::cuda
}  // namespace d2l
