// Pooling of images (torch.nn.functional.avg_pool2d and max_pool2d).
//
//   Tensor x = Randn({8, 20, 24, 24});  // (batch, channels, height, width)
//   Tensor y = AvgPool2d(x, 2);         // (8, 20, 12, 12)
//   Tensor z = MaxPool2d(x, /*kernel=*/3, /*stride=*/2, /*padding=*/1);
//
// Thread-safety: pure functions. Errors: std::invalid_argument for what is no
// image of 3 or 4 dimensions, float32 or float64, for a kernel that does not
// fit, and for a padding of more than half the kernel.

#ifndef D2L_COMMON_OPS_NN_POOLING_H_
#define D2L_COMMON_OPS_NN_POOLING_H_

#include "absl/types/optional.h"
#include "common/base/source_location.h"
#include "common/ops/nn/window.h"
#include "common/tensor/tensor.h"

namespace d2l {

// The mean of each window, whose padding counts as zeros. stride: the kernel's
// size, unless given.
Tensor AvgPool2d(const Tensor& x, Size2d kernel,
                 absl::optional<Size2d> stride = absl::nullopt,
                 Size2d padding = 0,
                 SourceLocation at = SourceLocation::Current());

// The largest of each window without its padding; NaN if one is there. The
// gradient goes to the first of several, but to the last NaN.
Tensor MaxPool2d(const Tensor& x, Size2d kernel,
                 absl::optional<Size2d> stride = absl::nullopt,
                 Size2d padding = 0,
                 SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_POOLING_H_
