// RunOnGpu on any machine, with or without a GPU.

#include "common/exercise/gpu_run.h"

#include <cuda_runtime_api.h>

#include "gtest/gtest.h"

namespace d2l {
namespace {

TEST(GpuRunTest, LeavesNoErrorInTheThread) {
  const int no_kernel = 0;
  GpuRun run;
  run.kernel = &no_kernel;
  EXPECT_EQ(RunOnGpu(run), "");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace d2l
