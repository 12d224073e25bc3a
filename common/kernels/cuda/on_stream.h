// A row of a table of kernels, of a family's launcher:
//
//   constexpr Kernels kCudaKernels = {cuda::On<cuda::LaunchFill>, …};
//
// and the scratch memory that a launcher may need. Thread-safety and errors: as
// of CudaStream::Launch and Memory::Allocate.

#ifndef D2L_COMMON_KERNELS_CUDA_ON_STREAM_H_
#define D2L_COMMON_KERNELS_CUDA_ON_STREAM_H_

#include <cstddef>
#include <cstdint>

#include "common/device/cuda/cuda_graph.h"
#include "common/device/cuda/cuda_stream.h"
#include "common/device/device_table.h"
#include "common/device/memory.h"
#include "common/device/op_label.h"
#include "common/device/storage.h"
#include "common/device/stream.h"
#include "common/kernels/cuda/launch.h"

namespace d2l::kernels::cuda {

// rest: what the launcher takes behind the arguments.
template <auto kLaunch, typename Args, typename... Rest>
std::uint64_t On(Stream& stream, const OpLabel& label, const Args& args,
                 Rest... rest) {
  return static_cast<CudaStream&>(stream).Launch(label, [&](const CudaLaunch&
                                                                to) {
    kLaunch(Launch{to.stream, to.multiprocessors, to.errors}, args, rest...);
  });
}

// From the stream's own free list, to which it returns at the end of the
// caller's scope, or of the graph that is recorded: whatever gets it next on
// this stream runs after what has been launched until then. Null for 0 bytes.
inline StorageRef AllocateScratch(Stream& stream, std::size_t bytes) {
  StorageRef scratch;
  if (bytes > 0) {
    scratch = Memory(stream.device()).Allocate(bytes, stream);
    CudaGraph::Keep(scratch);
  }
  return scratch;
}

// Of a launcher whose last parameter is its scratch memory.
template <auto kLaunch, typename Args>
std::uint64_t OnWithScratch(Stream& stream, const OpLabel& label,
                            const Args& args, std::size_t bytes) {
  const StorageRef scratch = AllocateScratch(stream, bytes);
  return On<kLaunch>(stream, label, args, scratch ? scratch->data() : nullptr);
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_ON_STREAM_H_
