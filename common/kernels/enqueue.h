// Enqueue: launches a kernel. The stream says the back end, the arguments say
// the kernel (kernels.h).
//
//   Enqueue(stream, OpLabel("ones"),
//           FillArgs{DType::kFloat32, n, out, 1.0, nullptr});
//
// A kernel is a row here and a definition for each back end: cpu::Enqueue
// beside its loops, and cuda::Launch (cuda/launch.h). If one is missing,
// nothing links. A binary without --config=cuda uses no_cuda.cc in place of the
// latter.
//
// Returns the operation's number in the stream. Throws std::runtime_error if
// the binary has no kernels for the stream's type of device. Thread-safety:
// may be called from any thread.

#ifndef D2L_COMMON_KERNELS_ENQUEUE_H_
#define D2L_COMMON_KERNELS_ENQUEUE_H_

#include <cstdint>

#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/kernels/kernels.h"

#define D2L_FOR_EACH_KERNEL(DO) \
  DO(FillArgs)                  \
  DO(ArangeArgs)                \
  DO(RandomArgs)                \
  DO(CopyArgs)                  \
  DO(UnaryArgs)                 \
  DO(BinaryArgs)                \
  DO(WhereArgs)                 \
  DO(ReduceArgs)                \
  DO(SoftmaxArgs)               \
  DO(MatMulArgs)                \
  DO(CatArgs)                   \
  DO(IndexArgs)                 \
  DO(Conv2dArgs)                \
  DO(Pool2dArgs)                \
  DO(BatchNormArgs)             \
  DO(CrossEntropyArgs)          \
  DO(IndexAddArgs)              \
  DO(AxpbyArgs)                 \
  DO(AxpbyListArgs)

namespace d2l {
class CpuStream;
}  // namespace d2l

namespace d2l::kernels {

#define D2L_ENQUEUE(Args)                                        \
  std::uint64_t Enqueue(Stream& stream, const OpLabel& label,    \
                        const Args& args);                       \
  namespace cpu {                                                \
  std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label, \
                        const Args& args);                       \
  }                                                              \
  namespace cuda {                                               \
  std::uint64_t Enqueue(Stream& stream, const OpLabel& label,    \
                        const Args& args);                       \
  }
D2L_FOR_EACH_KERNEL(D2L_ENQUEUE)
#undef D2L_ENQUEUE

// A CPU has strips instead (common/graph/strips.h).
namespace cuda {
std::uint64_t Enqueue(Stream& stream, const OpLabel& label,
                      const FusedArgs& args);
}

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_ENQUEUE_H_
