// The kernels of kernel_ladder.cu on a GPU.

#include <cuda_runtime_api.h>

#include "chapters/profiling/ladders/kernel_ladder.h"
#include "common/device/cuda/cuda_launch.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/device_table.h"
#include "common/device/op_label.h"
#include "common/tensor/tensor.h"

namespace d2l::profiling {

void EnqueueStep(const KernelStep& step, const Tensor& c, const Tensor& a,
                 const Tensor& b) {
  int n = static_cast<int>(c.shape()[0]);
  void* out = c.data();
  void *left = a.data(), *right = b.data();
  void* arguments[] = {&out, &left, &right, &n};
  auto& stream = static_cast<CudaStream&>(CurrentStream(c.device()));
  // A launch that fails is found by the stream.
  stream.Launch(OpLabel(step.name), [&](const CudaLaunch& launch) {
    cudaLaunchKernel(reinterpret_cast<const void*>(step.kernel),
                     dim3(step.blocks_x(n), step.blocks_y(n)),
                     dim3(step.threads_x, step.threads_y), arguments,
                     /*sharedMem=*/0, launch.stream);
  });
}

}  // namespace d2l::profiling
