#include "common/kernels/cuda/matmul.h"

#include "common/kernels/cuda/blas_gemm.h"
#include "common/kernels/cuda/gemm_call.h"
#include "common/kernels/cuda/small_product.h"

namespace d2l::kernels::cuda {

void LaunchMatMul(const CudaLaunch& launch, const MatMulArgs& args) {
  if (args.m == 0 || args.n == 0 || args.batch == 0) return;
  const MatMulArgs product = Unbatched(args);
  if (IsSmallProduct(product)) {
    LaunchSmallProduct({launch.stream, launch.multiprocessors, launch.errors},
                       product);
  } else {
    LaunchBlasGemm(launch, product.dtype, MakeGemmCall(product));
  }
}

}  // namespace d2l::kernels::cuda
