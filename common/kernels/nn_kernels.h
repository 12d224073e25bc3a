// NnKernels: the arithmetic of neural networks, a second table beside Kernels
// (kernels.h), whose rules hold here as well.
//
//   const NnKernels& kernels = GetNnKernels(stream.device().type());
//   kernels.avg_pool2d(stream, OpLabel("avg_pool2d"),
//                      {DType::kFloat32, images, window, out, in});
//
// All operands are contiguous, float32 or float64, images in PyTorch's order
// (batch, channels, height, width). No output overlaps an input, unless said.
//
// Results do not depend on how many threads compute them. Thread-safety: all
// functions may be called from any thread.

#ifndef D2L_COMMON_KERNELS_NN_KERNELS_H_
#define D2L_COMMON_KERNELS_NN_KERNELS_H_

#include <cstdint>

#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels {

// How a window slides over an image. Output element (i, j) sees the input's
// rows i * stride_height - padding_height and on, kernel_height of them, and
// likewise the columns; those outside of the image are padding.
struct Window2d {
  std::int64_t height, width;          // of the input
  std::int64_t out_height, out_width;  // of the output
  std::int64_t kernel_height, kernel_width;
  std::int64_t stride_height, stride_width;
  std::int64_t padding_height, padding_width;
};

// ---- Convolution (cross-correlation, as in PyTorch), with x of shape
// (batch, in_channels, height, width), weight of shape (out_channels,
// in_channels, kernel_height, kernel_width) and y of shape (batch,
// out_channels, out_height, out_width). The padding is of zeros.
enum class Conv2dPass {
  kForward,         // out: y; first: x; second: weight
  kInputGradient,   // out: of x; first: of y; second: weight
  kWeightGradient,  // out: of weight; first: of y; second: x
};

struct Conv2dArgs {
  Conv2dPass pass;
  DType dtype;
  std::int64_t batch, in_channels, out_channels;
  Window2d window;
  void* out;
  const void* first;
  const void* second;
  // (out_channels), added to y; null if there is none, and in the gradients.
  const void* bias = nullptr;
};

// ---- Pooling of each of `images` = batch * channels images.

// The mean of the window; padding counts as zeros (count_include_pad).
struct AvgPool2dArgs {
  DType dtype;
  std::int64_t images;
  Window2d window;
  void* out;
  const void* in;
};

// out: the gradient of the input; dy: of the output.
struct AvgPool2dGradientArgs {
  DType dtype;
  std::int64_t images;
  Window2d window;
  void* out;
  const void* dy;
};

// The largest of the window without its padding; NaN if one is there.
struct MaxPool2dArgs {
  DType dtype;
  std::int64_t images;
  Window2d window;
  void* out;
  const void* in;
};

// The gradient goes to the first of the largest, in reading order, or to the
// last NaN. in: the forward input, in which it is found again.
struct MaxPool2dGradientArgs {
  DType dtype;
  std::int64_t images;
  Window2d window;
  void* out;
  const void* dy;
  const void* in;
};

// ---- Batch normalisation of x of shape (batch, channels, inner). `statistics`
// are (2, channels): the means, then the variances (biased). With
// xhat = (x - mean) / sqrt(variance + eps):

// out: the statistics of x. batch * inner is at least 1.
struct BatchNormStatisticsArgs {
  DType dtype;
  std::int64_t batch, channels, inner;
  void* out;
  const void* x;
};

// out = xhat * weight + bias. weight and bias are (channels).
struct BatchNormArgs {
  DType dtype;
  std::int64_t batch, channels, inner;
  double eps;
  void* out;
  const void* x;
  const void* statistics;
  const void* weight;
  const void* bias;
};

// out, (2, channels): for each channel the sum of dy, which is the gradient of
// the bias, and of dy * xhat, that of the weight.
struct BatchNormSumsArgs {
  DType dtype;
  std::int64_t batch, channels, inner;
  double eps;
  void* out;
  const void* dy;
  const void* x;
  const void* statistics;
};

// out: the gradient of x. With count = batch * inner, if the statistics are
// those of x (training),
//   weight / sqrt(variance + eps)
//     * (dy - sums[0] / count - xhat * sums[1] / count),
// and if they are constants, where sums is null, without what is subtracted.
struct BatchNormInputGradientArgs {
  DType dtype;
  std::int64_t batch, channels, inner;
  double eps;
  void* out;
  const void* dy;
  const void* x;
  const void* statistics;
  const void* weight;
  const void* sums;
};

// ---- Cross-entropy of (samples, classes) logits.

// out[i] = -log(softmax(logits[i])[labels[i]]). A label outside [0, classes)
// fails late.
struct CrossEntropyArgs {
  DType dtype;
  std::int64_t samples, classes;
  void* out;
  const void* logits;
  const std::int64_t* labels;
};

// out[i, j] = dy[i] * (softmax(logits[i])[j] - (j == labels[i])). A label
// outside [0, classes) fails late.
struct CrossEntropyGradientArgs {
  DType dtype;
  std::int64_t samples, classes;
  void* out;
  const void* dy;
  const void* logits;
  const std::int64_t* labels;
};

// ---- Updates.

// The reverse of IndexOp (kernels.h): out is (outer, size, inner), and
//   kSelect (torch.index_add): index is (count),
//     out[o, index[i], j] += source[o, i, j];
//   kGather (torch.scatter_add): index is, as source, (outer, count, inner),
//     out[o, index[o, i, j], j] += source[o, i, j];
// for i from 0 on, one after the other. An index outside [0, size) fails late.
struct IndexAddArgs {
  IndexOp op;
  DType dtype;
  void* out;  // read and written
  const std::int64_t* index;
  const void* source;
  std::int64_t outer, size, count, inner;
};

// out[i] = alpha * x[i] + beta * out[i]; with beta = 0, out is not read.
struct AxpbyArgs {
  DType dtype;
  std::int64_t numel;
  double alpha, beta;
  void* out;  // read and written; may be x
  const void* x;
};

// A function for each.
struct NnKernels {
  template <typename Args>
  using Function = Kernels::Function<Args>;

  Function<Conv2dArgs> conv2d;
  Function<AvgPool2dArgs> avg_pool2d;
  Function<AvgPool2dGradientArgs> avg_pool2d_gradient;
  Function<MaxPool2dArgs> max_pool2d;
  Function<MaxPool2dGradientArgs> max_pool2d_gradient;
  Function<BatchNormStatisticsArgs> batch_norm_statistics;
  Function<BatchNormArgs> batch_norm;
  Function<BatchNormSumsArgs> batch_norm_sums;
  Function<BatchNormInputGradientArgs> batch_norm_input_gradient;
  Function<CrossEntropyArgs> cross_entropy;
  Function<CrossEntropyGradientArgs> cross_entropy_gradient;
  Function<IndexAddArgs> index_add;
  Function<AxpbyArgs> axpby;
};

// The kernels for streams of this type of device. Throws std::runtime_error if
// the binary has none for it.
const NnKernels& GetNnKernels(DeviceType type);

// For GetNnKernels, as CpuKernels and CudaKernels.
const NnKernels& CpuNnKernels();
const NnKernels& CudaNnKernels();

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_NN_KERNELS_H_
