#include "common/kernels/cuda/blas_gemm.h"
#include "common/kernels/cuda/index/gemm_call.h"
#include "common/kernels/cuda/launch.h"

namespace d2l::kernels::cuda {

void Launch(const CudaLaunch& launch, const MatMulArgs& args) {
  if (args.m == 0 || args.n == 0 || args.batch == 0) return;
  const MatMulArgs product = Unbatched(args);
  if (IsSmallProduct(product)) {
    LaunchSmallProduct(launch, product);
  } else {
    LaunchBlasGemm(launch, product.dtype, MakeGemmCall(product));
  }
}

}  // namespace d2l::kernels::cuda
