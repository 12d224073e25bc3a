#include <cuda_runtime_api.h>

#include "tests/gpu_probe.h"

namespace d2l {
namespace {

__global__ void Nothing() {}

__global__ void Claim(unsigned* words) {
  if (atomicCAS_system(&words[0], 0u, 1u) == 0) atomicAdd_system(&words[1], 1u);
}

}  // namespace

void LaunchNothing(CudaStreamHandle stream) { Nothing<<<1, 1, 0, stream>>>(); }

void LaunchClaims(CudaStreamHandle stream, std::uint32_t* words) {
  Claim<<<64, 256, 0, stream>>>(words);
}

}  // namespace d2l
