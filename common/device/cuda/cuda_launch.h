// CudaLaunch: what CudaStream::Launch calls a launcher with.
//
//   stream.Launch(label, [&](const CudaLaunch& to) {
//     Axpy<<<blocks, threads, 0, to.stream>>>(n, a, x, y);
//   });
//
// A plain value, good while the launcher runs. For .cu and .cc files.

#ifndef D2L_COMMON_DEVICE_CUDA_CUDA_LAUNCH_H_
#define D2L_COMMON_DEVICE_CUDA_CUDA_LAUNCH_H_

#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/stream/error_record.h"

namespace d2l {

class CudaStream;

// The stream's GPU is the thread's current device.
struct CudaLaunch {
  CudaStreamHandle stream;  // a cudaStream_t
  ErrorReporter errors;     // for kernels that check what they read
  int multiprocessors;
  CudaStream* owner;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_CUDA_LAUNCH_H_
