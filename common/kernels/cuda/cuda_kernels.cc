// The CUDA kernels: each family launches on the stream what its file launches.

#include <cstddef>
#include <cstdint>

#include "common/device/cuda/cuda_graph.h"
#include "common/device/cuda/cuda_stream.h"
#include "common/device/device_table.h"
#include "common/device/memory.h"
#include "common/kernels/cuda/concat_gather.h"
#include "common/kernels/cuda/elementwise.h"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/matmul.h"
#include "common/kernels/cuda/random.h"
#include "common/kernels/cuda/reduce.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels {
namespace {

// rest: what the launcher takes behind the arguments.
template <auto kLaunch, typename Args, typename... Rest>
std::uint64_t On(Stream& stream, const OpLabel& label, const Args& args,
                 Rest... rest) {
  return static_cast<CudaStream&>(stream).Launch(
      label, [&](const CudaLaunch& to) {
        kLaunch(cuda::Launch{to.stream, to.multiprocessors, to.errors}, args,
                rest...);
      });
}

std::uint64_t Reduce(Stream& stream, const OpLabel& label,
                     const ReduceArgs& args) {
  // From the stream's own free list, to which it returns at the end of this
  // call, or of the graph: whatever gets it next on this stream runs after the
  // reduction.
  StorageRef scratch;
  if (const std::size_t bytes = cuda::ReduceScratchBytes(args)) {
    scratch = Memory(stream.device()).Allocate(bytes, stream);
    CudaGraph::Keep(scratch);
  }
  return On<cuda::LaunchReduce>(stream, label, args,
                                scratch ? scratch->data() : nullptr);
}

std::uint64_t MatMul(Stream& stream, const OpLabel& label,
                     const MatMulArgs& args) {
  return static_cast<CudaStream&>(stream).Launch(
      label, [&args](const CudaLaunch& to) { cuda::LaunchMatMul(to, args); });
}

constexpr Kernels kCudaKernels = {
    On<cuda::LaunchFill>,    On<cuda::LaunchArange>,
    On<cuda::LaunchRandom>,  On<cuda::LaunchCopy>,
    On<cuda::LaunchUnary>,   On<cuda::LaunchBinary>,
    On<cuda::LaunchWhere>,   Reduce,
    On<cuda::LaunchSoftmax>, MatMul,
    On<cuda::LaunchCat>,     On<cuda::LaunchIndex>,
};

}  // namespace

const Kernels& CudaKernels() { return kCudaKernels; }

}  // namespace d2l::kernels
