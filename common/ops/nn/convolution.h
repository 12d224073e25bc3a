// Convolution of images (torch.nn.functional.conv2d).
//
//   Tensor x = Randn({8, 1, 28, 28});      // (batch, channels, height, width)
//   Tensor weight = Randn({20, 1, 5, 5});  // (out, in channels, height, width)
//   Tensor bias = Zeros({20});
//   Tensor y = Conv2d(x, weight, bias);    // (8, 20, 24, 24)
//   Conv2dOptions options;
//   options.stride = 2;
//   options.padding = Size2d(2, 1);
//   Tensor z = Conv2d(x, weight, {}, options);  // (8, 20, 14, 13)
//
// Asynchronous. All of one dtype, float32 or float64, and on one device.
// Operands that are not contiguous are copied first.
//
// Thread-safety: pure functions. Errors: std::invalid_argument for shapes that
// do not go together, and for a kernel larger than the padded images.

#ifndef D2L_COMMON_OPS_NN_CONVOLUTION_H_
#define D2L_COMMON_OPS_NN_CONVOLUTION_H_

#include "common/base/source_location.h"
#include "common/ops/nn/window.h"
#include "common/tensor/tensor.h"

namespace d2l {

// A number, or (height, width).
struct Conv2dOptions {
  Size2d stride = 1;
  Size2d padding = 0;  // of zeros, on each side
};

// Each output channel is the sum over the input channels of their
// cross-correlation with its kernels, and its bias, if that is defined.
Tensor Conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv2dOptions& options = {},
              SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_CONVOLUTION_H_
