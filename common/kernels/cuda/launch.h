// What a family's launcher is given beside its arguments.
//
//   stream.Launch(label, [&](const Launch& launch) {
//     LaunchBinary(launch, args);
//   });
//
// A launcher starts its kernels on launch.stream and returns; it waits for
// nothing, and leaves a launch that went wrong to cudaGetLastError. What it
// cannot launch at all, such as a dimension too long for a kernel, it throws
// as std::invalid_argument. Thread-safe, as long as the stream lives.

#ifndef D2L_COMMON_KERNELS_CUDA_LAUNCH_H_
#define D2L_COMMON_KERNELS_CUDA_LAUNCH_H_

#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/error_record.h"

namespace d2l::kernels::cuda {

struct Launch {
  CudaStreamHandle stream;
  int multiprocessors;   // of the stream's GPU
  ErrorReporter errors;  // for what a kernel finds wrong
};

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_LAUNCH_H_
