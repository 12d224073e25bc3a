// The CUDA kernels: each family launches on the stream what its file launches.

#include <cstddef>
#include <cstdint>

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

template <typename F>
std::uint64_t LaunchOn(Stream& stream, const OpLabel& label, const F& launch) {
  return static_cast<CudaStream&>(stream).Launch(
      label, [&launch](const CudaLaunch& to) {
        launch(cuda::Launch{to.stream, to.multiprocessors, to.errors});
      });
}

class CudaKernelsImpl final : public Kernels {
 public:
  std::uint64_t Fill(Stream& stream, const OpLabel& label,
                     const FillArgs& args) override {
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchFill(launch, args);
    });
  }
  std::uint64_t Arange(Stream& stream, const OpLabel& label,
                       const ArangeArgs& args) override {
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchArange(launch, args);
    });
  }
  std::uint64_t Random(Stream& stream, const OpLabel& label,
                       const RandomArgs& args) override {
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchRandom(launch, args);
    });
  }
  std::uint64_t Copy(Stream& stream, const OpLabel& label,
                     const CopyArgs& args) override {
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchCopy(launch, args);
    });
  }
  std::uint64_t Unary(Stream& stream, const OpLabel& label,
                      const UnaryArgs& args) override {
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchUnary(launch, args);
    });
  }
  std::uint64_t Binary(Stream& stream, const OpLabel& label,
                       const BinaryArgs& args) override {
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchBinary(launch, args);
    });
  }
  std::uint64_t Where(Stream& stream, const OpLabel& label,
                      const WhereArgs& args) override {
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchWhere(launch, args);
    });
  }
  std::uint64_t Reduce(Stream& stream, const OpLabel& label,
                       const ReduceArgs& args) override {
    // From the stream's own free list, to which it returns at the end of this
    // call: whatever gets it next on this stream runs after the reduction.
    StorageRef scratch;
    if (const std::size_t bytes = cuda::ReduceScratchBytes(args)) {
      scratch = Memory(stream.device()).Allocate(bytes, stream);
    }
    void* const data = scratch ? scratch->data() : nullptr;
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchReduce(launch, args, data);
    });
  }
  std::uint64_t Softmax(Stream& stream, const OpLabel& label,
                        const SoftmaxArgs& args) override {
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchSoftmax(launch, args);
    });
  }
  std::uint64_t MatMul(Stream& stream, const OpLabel& label,
                       const MatMulArgs& args) override {
    return static_cast<CudaStream&>(stream).Launch(
        label, [&args](const CudaLaunch& to) { cuda::LaunchMatMul(to, args); });
  }
  std::uint64_t Cat(Stream& stream, const OpLabel& label,
                    const CatArgs& args) override {
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchCat(launch, args);
    });
  }
  std::uint64_t Index(Stream& stream, const OpLabel& label,
                      const IndexArgs& args) override {
    return LaunchOn(stream, label, [&](const cuda::Launch& launch) {
      cuda::LaunchIndex(launch, args);
    });
  }
};

}  // namespace

Kernels& CudaKernels() {
  static CudaKernelsImpl& kernels = *new CudaKernelsImpl;
  return kernels;
}

}  // namespace d2l::kernels
