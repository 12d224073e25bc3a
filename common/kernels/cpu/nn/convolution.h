// Convolution on the CPU (Conv2dArgs, nn_kernels.h): as matrix products of the
// patches that the kernel sees (im2col).
//
//   Conv2d<float>(args);  // by the device's cores, as gemm.h says
//
// An image's result, and its gradient, have the same bits whatever else is in
// the batch. The gradient of the weight is summed over groups of images from
// the first to the last; which groups, the sizes of the images say.
//
// Thread-safety: any thread may call these. Each keeps its scratch for its next
// call: a megabyte or so for patches, four times the largest weight, and more,
// for Winograd's algorithm. Throws std::bad_alloc if it cannot get that.

#ifndef D2L_COMMON_KERNELS_CPU_NN_CONVOLUTION_H_
#define D2L_COMMON_KERNELS_CPU_NN_CONVOLUTION_H_

#include "common/kernels/nn_kernels.h"

namespace d2l::kernels::cpu {

// T is float or double.
template <typename T>
void Conv2d(const Conv2dArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_NN_CONVOLUTION_H_
