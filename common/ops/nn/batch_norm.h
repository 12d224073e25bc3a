// Batch normalisation (torch.nn.functional.batch_norm).
//
//   Tensor x = Randn({8, 3, 28, 28});  // (batch, channels, …)
//   Tensor mean = Zeros({3}), variance = Ones({3});
//   Tensor y = BatchNorm(x, Ones({3}), Zeros({3}), mean, variance,
//                        /*training=*/true);
//
// Thread-safety: none for the running values, which it writes to. Errors:
// std::invalid_argument for shapes and dtypes that do not go together, and in
// training for one value per channel.

#ifndef D2L_COMMON_OPS_NN_BATCH_NORM_H_
#define D2L_COMMON_OPS_NN_BATCH_NORM_H_

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// (x - mean) / sqrt(variance + eps) * weight + bias, channel by channel; x is
// (batch, channels, …), all others (channels), all float32 or all float64.
// Training: of x itself; and the running values become (1 - momentum) times
// what they were plus momentum times those of x, the variance with n - 1 in the
// denominator. Else: the running values.
Tensor BatchNorm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                 const Tensor& running_mean, const Tensor& running_var,
                 bool training, double momentum = 0.1, double eps = 1e-5,
                 SourceLocation at = SourceLocation::Current());

// (2, channels): the means of x and its variances, with n in the denominator.
Tensor BatchNormStatistics(const Tensor& x,
                           SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_NN_BATCH_NORM_H_
