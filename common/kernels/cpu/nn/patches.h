// Patches: what the kernel of a convolution sees of images, as a matrix.
//
//   const PatchRange range = {0, channels, 0, 4 * window.out_height};
//   CopyPatches(args, range, x, patches);  // of four images
//
// Row (c, kh, kw), for the range's channels, is element (kh, kw) of the window
// in channel c; column (n, oh, ow), for its rows of the output, that position
// of the window in image n.
//
// Pure functions.

#ifndef D2L_COMMON_KERNELS_CPU_NN_PATCHES_H_
#define D2L_COMMON_KERNELS_CPU_NN_PATCHES_H_

#include <cstdint>

#include "common/kernels/nn_kernels.h"

namespace d2l::kernels::cpu {

struct PatchRange {
  std::int64_t first_channel, last_channel;  // up to last_channel - 1
  // Of the rows (n, oh) of all outputs.
  std::int64_t first_row, last_row;
};

// Copies the patches of x, zeros for the padding (im2col).
void CopyPatches(const Conv2dArgs& args, const PatchRange& range,
                 const float* x, float* patches);
void CopyPatches(const Conv2dArgs& args, const PatchRange& range,
                 const double* x, double* patches);

// Writes to each element of x the sum of what the patches have of it
// (col2im). The range is of whole images.
void AddPatches(const Conv2dArgs& args, const PatchRange& range,
                const float* patches, float* x);
void AddPatches(const Conv2dArgs& args, const PatchRange& range,
                const double* patches, double* x);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_NN_PATCHES_H_
