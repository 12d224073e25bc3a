// RunOnGpu on any machine, with or without a GPU.

#include "common/exercise/gpu_run.h"

#include <cuda_runtime_api.h>

#include "gtest/gtest.h"

namespace d2l {
namespace {

TEST(GpuRunTest, LeavesNoErrorInTheThread) {
  // Without a driver this is an error in every call.
  const cudaError_t before = cudaGetLastError();
  const int no_kernel = 0;
  GpuRun run;
  run.kernel = &no_kernel;
  EXPECT_EQ(RunOnGpu(run), "");
  EXPECT_EQ(cudaGetLastError(), before);
}

}  // namespace
}  // namespace d2l
