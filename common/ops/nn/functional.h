// The functions of networks for images (torch.nn.functional).
//
//   Tensor x = Randn({8, 1, 28, 28});      // (batch, channels, height, width)
//   Tensor weight = Randn({20, 1, 5, 5});  // (out, in channels, height, width)
//   Tensor y = Conv2d(x, weight, Zeros({20}));      // (8, 20, 24, 24)
//   Conv2dOptions options;
//   options.stride = 2;
//   options.padding = Size2d(2, 1);
//   Tensor z = Conv2d(x, weight, {}, options);      // (8, 20, 14, 13)
//   Tensor mean = Zeros({20}), variance = Ones({20});
//   y = BatchNorm(y, Ones({20}), Zeros({20}), mean, variance,
//                 /*training=*/true);
//   y = MaxPool2d(y, /*kernel=*/3, /*stride=*/2, /*padding=*/1);
//   y = AvgPool2d(y, 2);                            // (8, 20, 6, 6)
//   Tensor labels = RandInt(0, 10, {8});
//   Tensor losses = CrossEntropy(Randn({8, 10}), labels);  // (8)
//
// Asynchronous. All operands have one dtype, float32 or float64, and are on one
// device. Operands that are not contiguous are copied first.
//
// Thread-safety: pure functions, except BatchNorm, which writes to the running
// values. Errors: std::invalid_argument for mismatched shapes and dtypes.

#ifndef D2L_COMMON_OPS_NN_FUNCTIONAL_H_
#define D2L_COMMON_OPS_NN_FUNCTIONAL_H_

#include <cstdint>
#include <optional>

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// A kernel, stride or padding: one number for both directions, or two.
struct Size2d {
  Size2d(std::int64_t both)  // NOLINT(google-explicit-constructor)
      : height(both), width(both) {}
  Size2d(std::int64_t height, std::int64_t width)
      : height(height), width(width) {}

  std::int64_t height;
  std::int64_t width;
};

struct Conv2dOptions {
  Size2d stride = 1;
  Size2d padding = 0;  // of zeros, on each side
};

// Each output channel is the sum over the input channels of their
// cross-correlation with its kernels, and its bias, if that is defined. A
// kernel larger than the padded images is refused.
Tensor Conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const Conv2dOptions& options = {},
              SourceLocation at = SourceLocation::Current());

// The mean of each window, whose padding counts as zeros. x: images of 3 or 4
// dimensions. stride: the kernel's size, unless given. A kernel that does not
// fit, and a padding of more than half the kernel, are refused.
Tensor AvgPool2d(const Tensor& x, Size2d kernel,
                 std::optional<Size2d> stride = std::nullopt,
                 Size2d padding = 0,
                 SourceLocation at = SourceLocation::Current());

// The largest element of each window, without the padding; NaN if there is one.
// The gradient goes to the first of equal elements, but to the last NaN.
Tensor MaxPool2d(const Tensor& x, Size2d kernel,
                 std::optional<Size2d> stride = std::nullopt,
                 Size2d padding = 0,
                 SourceLocation at = SourceLocation::Current());

// (x - mean) / sqrt(variance + eps) * weight + bias, channel by channel; x is
// (batch, channels, …), all others (channels). training: mean and variance are
// those of x, and the running values become (1 - momentum) times their old
// values plus momentum times those of x, the variance with n - 1 in the
// denominator; one value per channel is refused. Otherwise mean and variance
// are the running values.
Tensor BatchNorm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const Tensor& running_mean, const Tensor& running_var,
                 bool training, double momentum = 0.1, double eps = 1e-5,
                 SourceLocation at = SourceLocation::Current());

// -log(softmax(logits)[label]) of each of n samples: (n). logits: (n, classes);
// labels: (n), int64. A label outside [0, classes) fails late, and the message
// names it and the line of the request.
Tensor CrossEntropy(const Tensor& logits, const Tensor& labels,
                    SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_FUNCTIONAL_H_
