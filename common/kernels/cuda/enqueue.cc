// The CUDA kernels as operations: each launches the kernels of its file.

#include "common/kernels/enqueue.h"

#include <cstddef>
#include <cstdint>

#include "common/device/cuda/stream/cuda_graph.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/device/memory/storage.h"
#include "common/kernels/cuda/launch.h"

namespace d2l::kernels::cuda {
namespace {

// Allocates from the stream's own free list, to which the memory returns at the
// end of the caller's scope, or of the graph that is captured: its next user on
// this stream runs after all launches until then. Null for 0 bytes.
StorageRef AllocateWorkspace(Stream& stream, std::size_t bytes) {
  StorageRef workspace;
  if (bytes > 0) {
    workspace = Memory(stream.device()).Allocate(bytes, stream);
    CudaGraph::Keep(workspace);
  }
  return workspace;
}

template <typename Args>
std::uint64_t EnqueueOf(Stream& stream, const OpLabel& label,
                        const Args& args) {
  const StorageRef workspace = AllocateWorkspace(stream, WorkspaceBytes(args));
  return static_cast<CudaStream&>(stream).Launch(
      label, [&](const CudaLaunch& to) {
        Launch(to, args, workspace ? workspace->data() : nullptr);
      });
}

}  // namespace

#define D2L_ENQUEUE(Args)                                     \
  std::uint64_t Enqueue(Stream& stream, const OpLabel& label, \
                        const Args& args) {                   \
    return EnqueueOf(stream, label, args);                    \
  }
D2L_FOR_EACH_KERNEL(D2L_ENQUEUE)
D2L_ENQUEUE(FusedArgs)

}  // namespace d2l::kernels::cuda
