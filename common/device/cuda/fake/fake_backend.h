// The model of GPUs that a program built with --config=emulate_cuda runs on.
//
//   FakeCudaOfBackend().LaunchKernel(stream, [=] { y[0] = x[0] + 1; });
//
// Lives as long as the process; thread-safe.

#ifndef D2L_COMMON_DEVICE_CUDA_FAKE_FAKE_BACKEND_H_
#define D2L_COMMON_DEVICE_CUDA_FAKE_FAKE_BACKEND_H_

#include "common/device/cuda/fake/fake_cuda.h"

namespace d2l {

FakeCuda& FakeCudaOfBackend();

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_FAKE_FAKE_BACKEND_H_
