// A kernel and not cuStreamWriteValue64, which not every driver has.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "common/device/cuda/cuda_api.h"

namespace d2l {
namespace {

__global__ void WriteWordKernel(std::uint64_t* word, std::uint64_t value) {
  *word = value;
}

}  // namespace

void LaunchWriteWord(CudaStreamHandle stream, std::uint64_t* word,
                     std::uint64_t value) {
  WriteWordKernel<<<1, 1, 0, stream>>>(word, value);
}

}  // namespace d2l
