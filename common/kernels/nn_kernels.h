// The arithmetic of neural networks: further families of kernels, beside those
// of kernels.h, whose rules hold here as well.
//
//   Enqueue(stream, OpLabel("avg_pool2d"),
//           Pool2dArgs{Pool2dOp::kAvg, dtype, images, window, out, x});
//
// All operands are contiguous, float32 or float64, images in PyTorch's order
// (batch, channels, height, width). No output overlaps an input, unless said.
//
// Results do not depend on how many threads compute them.

#ifndef D2L_COMMON_KERNELS_NN_KERNELS_H_
#define D2L_COMMON_KERNELS_NN_KERNELS_H_

#include <cstdint>

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
enum class Pool2dOp {
  kAvg,  // the mean of the window; padding counts as zeros (count_include_pad)
  kMax,  // the largest of it without its padding; NaN if one is there
  kAvgGradient,
  // Goes to the first of the largest, in reading order, or to the last NaN.
  kMaxGradient,
};

struct Pool2dArgs {
  Pool2dOp op;
  DType dtype;
  std::int64_t images;
  Window2d window;
  void* out;       // y; of a gradient, that of x
  const void* in;  // x; of a gradient, that of y
  // x, in which kMaxGradient finds the largest again; else null.
  const void* forward_input = nullptr;
};

// ---- Batch normalisation of x of shape (batch, channels, inner). `statistics`
// are (2, channels): the means, then the variances (biased). With
// xhat = (x - mean) / sqrt(variance + eps) and count = batch * inner:
enum class BatchNormPass {
  // out: the statistics of x. count is at least 1.
  kStatistics,
  // out = xhat * weight + bias. weight and bias are (channels).
  kForward,
  // out, (2, channels): for each channel the sum of dy, which is the gradient
  // of the bias, and of dy * xhat, that of the weight.
  kSums,
  // out: the gradient of x. If the statistics are those of x (training),
  //   weight / sqrt(variance + eps)
  //     * (dy - sums[0] / count - xhat * sums[1] / count),
  // and if they are constants, where sums is null, without what is subtracted.
  kInputGradient,
};

// What a pass does not read is null.
struct BatchNormArgs {
  BatchNormPass pass;
  DType dtype;
  std::int64_t batch, channels, inner;
  double eps;
  void* out;
  const void* x;
  const void* statistics = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  const void* dy = nullptr;
  const void* sums = nullptr;
};

// ---- Cross-entropy of (samples, classes) logits:
//   out[i] = -log(softmax(logits[i])[labels[i]])
// and, if there is dy, (samples), its gradient:
//   out[i, j] = dy[i] * (softmax(logits[i])[j] - (j == labels[i]))
// A label outside [0, classes) fails late.
struct CrossEntropyArgs {
  DType dtype;
  std::int64_t samples, classes;
  void* out;
  const void* logits;
  const std::int64_t* labels;
  const void* dy = nullptr;
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

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_NN_KERNELS_H_
