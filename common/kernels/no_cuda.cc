// The CUDA kernels of a binary built without --config=cuda.

#include <cstdint>
#include <stdexcept>

#include "common/kernels/enqueue.h"

namespace d2l::kernels::cuda {

#define D2L_ENQUEUE(Args)                                       \
  std::uint64_t Enqueue(Stream&, const OpLabel&, const Args&) { \
    throw std::runtime_error(                                   \
        "[kernels] this binary has no CUDA kernels; use "       \
        "--devices=cpu:0,cpu:1");                               \
  }
D2L_FOR_EACH_KERNEL(D2L_ENQUEUE)
D2L_ENQUEUE(FusedArgs)

}  // namespace d2l::kernels::cuda
