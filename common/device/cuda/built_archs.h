// The GPU architectures that this binary has machine code for
// (--//:cuda_archs).
//
//   BuiltArchs();  // {800, 900} for sm_80,sm_90

#ifndef D2L_COMMON_DEVICE_CUDA_BUILT_ARCHS_H_
#define D2L_COMMON_DEVICE_CUDA_BUILT_ARCHS_H_

#include <vector>

namespace d2l {

// Rising.
std::vector<int> BuiltArchs();

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_BUILT_ARCHS_H_
