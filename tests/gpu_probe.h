// The kernel of gpu_probe.cc.

#ifndef D2L_TESTS_GPU_PROBE_H_
#define D2L_TESTS_GPU_PROBE_H_

#include "common/device/cuda/cuda_api.h"

namespace d2l {

void LaunchNothing(CudaStreamHandle stream);

}  // namespace d2l

#endif  // D2L_TESTS_GPU_PROBE_H_
