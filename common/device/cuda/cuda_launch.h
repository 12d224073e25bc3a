// CudaLaunch: the argument that CudaStream::Launch passes to a launcher.
// LaunchGeometry: the blocks and threads of a kernel launch.
//
//   stream.Launch(label, [&](const CudaLaunch& to) {
//     const LaunchGeometry shape = GeometryFor(n, to.multiprocessors);
//     Axpy<<<shape.blocks, shape.threads, 0, to.stream>>>(n, a, x, y);
//   });
//   // the kernel strides over its elements:
//   // for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
//   //      i += gridDim.x * blockDim.x)
//
// A grid-stride loop is right for every geometry; GeometryFor, a pure function,
// picks one that just fills the GPU, so that a large array does not pay for
// starting more blocks. The result of a kernel must not depend on it.
//
// Plain values; a CudaLaunch is valid while the launcher runs. For .cu and .cc
// files.

#ifndef D2L_COMMON_DEVICE_CUDA_CUDA_LAUNCH_H_
#define D2L_COMMON_DEVICE_CUDA_CUDA_LAUNCH_H_

#include <algorithm>
#include <cstdint>

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

struct LaunchGeometry {
  unsigned blocks;   // at least 1 and less than 2^31
  unsigned threads;  // in a block; a multiple of a warp's 32
};

// Threads of a block, unless there are fewer elements.
inline constexpr unsigned kThreadsPerBlock = 256;
// Eight blocks of that size are as many threads as a multiprocessor can hold;
// twice that evens out blocks of unequal speed.
inline constexpr std::int64_t kBlocksPerMultiprocessor = 16;

// The geometry for numel elements, of which a thread takes per_thread at once.
// An empty array gets one block with nothing to do. numel at least 0,
// multiprocessors and per_thread at least 1.
inline LaunchGeometry GeometryFor(std::int64_t numel, int multiprocessors,
                                  int per_thread = 1) {
  // Not numel + per_thread - 1, which can overflow.
  const std::int64_t items = numel / per_thread + (numel % per_thread != 0);
  constexpr std::int64_t kWarp = 32;
  if (items <= kThreadsPerBlock) {
    const std::int64_t warps =
        std::max<std::int64_t>(1, (items + kWarp - 1) / kWarp);
    return {1, static_cast<unsigned>(warps * kWarp)};
  }
  const std::int64_t wanted =
      items / kThreadsPerBlock + (items % kThreadsPerBlock != 0);
  const std::int64_t most = kBlocksPerMultiprocessor * multiprocessors;
  return {static_cast<unsigned>(std::min(wanted, most)), kThreadsPerBlock};
}

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_CUDA_LAUNCH_H_
