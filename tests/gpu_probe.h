// The kernels of gpu_probe.cc.

#ifndef D2L_TESTS_GPU_PROBE_H_
#define D2L_TESTS_GPU_PROBE_H_

#include <cstdint>

#include "common/device/cuda/cuda_api.h"

namespace d2l {

void LaunchNothing(CudaStreamHandle stream);

// Many threads try to set words[0] from 0 to 1; those that do count in
// words[1].
void LaunchClaims(CudaStreamHandle stream, std::uint32_t* words);

}  // namespace d2l

#endif  // D2L_TESTS_GPU_PROBE_H_
