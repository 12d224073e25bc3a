// Convolution by Winograd's algorithm, as Lavin and Gray (2015) describe it for
// networks: F(4x4, 3x3). A 3 x 3 kernel of stride 1 is computed for tiles of
// 4 x 4 outputs, each from 6 x 6 inputs: with 36 multiplications for an input
// and an output channel, where the definition has 144, and transforms before
// and behind, whose cost many channels share.
//
//   if (WinogradPays(args)) {
//     WinogradConv2d(args);
//   } else { … }
//
// The gradients are computed so, too: that of the input is a convolution of
// that of the output, that of the weight the transpose of the algorithm.
//
// Errors are larger than the definition's. Of normally distributed numbers and
// 64 to 512 channels, their root mean square is 0.7e-6 to 2e-6 of the results'
// (the definition's: 0.2e-6 to 0.4e-6), the largest 2e-5 of it (4e-6).
// What convolution.h says about bits holds.
//
// Thread-safety: as convolution.h.

#ifndef D2L_COMMON_KERNELS_CPU_NN_WINOGRAD_H_
#define D2L_COMMON_KERNELS_CPU_NN_WINOGRAD_H_

#include "common/kernels/nn_kernels.h"

namespace d2l::kernels::cpu {

// Whether the algorithm applies, and is faster than the definition: of float32,
// and for the sizes of the convolution without its batch, so that an image's
// result does not depend on that.
bool WinogradPays(const Conv2dArgs& args);

void WinogradConv2d(const Conv2dArgs& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_NN_WINOGRAD_H_
