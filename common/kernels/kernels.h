// The kernels: the arithmetic of a back end, on raw pointers and a stream.
//
//   Enqueue(stream, OpLabel("ones"),
//           FillArgs{DType::kFloat32, n, out, 1.0, nullptr});  // enqueue.h
//
// Families, whose operations are listed in op_tables.h; a family is the struct
// of its arguments, for which each back end has a kernel. Nothing here knows a
// Tensor: common/ops has checked shapes and allocated memory, and the pointers
// stay valid until the operation has run (common/device/memory/memory.h says
// why). The kernel checks values (an index, a divisor) and fails the operation
// if they are wrong: a late error.
//
// An element-wise function is written once, in functors.h; the CPU loop and
// the CUDA kernel instantiate the same one. A family throws
// std::invalid_argument for a dtype that the operation does not take.
//
// Results do not depend on how many threads compute them.

#ifndef D2L_COMMON_KERNELS_KERNELS_H_
#define D2L_COMMON_KERNELS_KERNELS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "common/kernels/layout.h"
#include "common/kernels/op_tables.h"
#include "common/tensor/dtype.h"
#include "common/tensor/scalar.h"
#include "common/tensor/shape.h"

namespace d2l::kernels {

// ---- Element-wise. In all of these, layout is null if every operand is
// contiguous and has `numel` elements. Otherwise it is collapsed (layout.h), is
// copied if it is kept, and numel is that of its shape, at least 1. An output
// may be an input's memory, element for element, but must not overlap it
// otherwise.

struct FillArgs {
  DType dtype;
  std::int64_t numel;
  void* out;
  Scalar value;
  const StridedLayout* layout;  // no inputs
};

// out[i] = start + i * step, computed in double for a floating-point dtype.
struct ArangeArgs {
  DType dtype;
  std::int64_t numel;
  void* out;
  Scalar start;
  Scalar step;
};

// Converts as static_cast does, so integers wrap around; but a floating-point
// number beyond an integer dtype's range becomes the nearest in it, and NaN 0.
struct CopyArgs {
  DType out_dtype;
  DType in_dtype;
  std::int64_t numel;
  void* out;
  const void* in;
  const StridedLayout* layout;  // one input
};

struct UnaryArgs {
  UnaryOp op;
  DType dtype;
  std::int64_t numel;
  void* out;
  const void* in;
  const StridedLayout* layout;  // one input
};

// An operand: an address on the device, or, if that is null, one number that
// fits the dtype. At least one of two operands is an address.
struct Input {
  const void* data = nullptr;
  Scalar scalar;
};

struct BinaryArgs {
  BinaryOp op;
  DType dtype;  // of the operands
  std::int64_t numel;
  void* out;
  Input a;
  Input b;
  const StridedLayout* layout;  // two inputs; a scalar's strides are 0
};

// out = condition ? a : b. The condition is uint8; a and b are as out.
struct WhereArgs {
  DType dtype;
  std::int64_t numel;
  void* out;
  const void* condition;
  Input a;
  Input b;
  const StridedLayout* layout;  // three inputs: condition, a, b
};

// Several element-wise operations as one kernel, for GPUs: step by step, each
// over all elements. Values are float32 or uint8, which a float holds exactly.
struct FusedArgs {
  static constexpr int kMaxSteps = 48;
  static constexpr int kMaxMemory = 16;
  static constexpr int kMaxNumbers = 16;
  static constexpr int kMaxSlots = 8;

  // The source of an operand, or the destination of a result.
  struct Ref {
    enum Kind : std::uint8_t {
      kNone,
      kEach,    // element by element in memory[index]
      kRow,     // memory[index], repeated
      kOne,     // the number at memory[index]
      kNumber,  // numbers[index]
      kSlot,    // a value between steps
    };
    Kind kind = kNone;
    std::uint8_t index = 0;
  };
  struct Step {
    enum Kind : std::uint8_t { kUnary, kBinary, kWhere, kCopy, kToUInt8 };
    Kind kind;
    std::uint8_t op;  // a UnaryOp, or a BinaryOp but kPow
    Ref out;
    Ref in[3];
  };
  struct Memory {
    void* data;
    std::uint32_t period;  // of a row
    bool is_uint8;
  };

  std::int64_t numel;  // below 2^31
  int steps;
  Step step[kMaxSteps];
  Memory memory[kMaxMemory];  // results may be operands, element for element
  float numbers[kMaxNumbers];
};

// ---- Reductions. The order of additions is fixed.

// out[k] over all kept indices k, row by row and contiguous, is the reduction
// over all reduced indices r of in[k . kept_strides + r . reduced_strides].
// Without reduced elements kSum is 0 and kMean NaN; the others do not occur.
struct ReduceArgs {
  ReduceOp op;
  DType dtype;  // of the input
  void* out;
  const void* in;
  const ReduceLayout* layout;  // copied if it is kept
};

// Softmax over the middle dimension of a contiguous (outer, size, inner);
// float32 and float64. out may be in.
struct SoftmaxArgs {
  bool log;  // computes log softmax
  DType dtype;
  void* out;
  const void* in;
  std::int64_t outer, size, inner;
};

// ---- Random numbers.

// The state of a generator; philox.h says which number each element is.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};

struct RandomArgs {
  RandomOp op;
  DType dtype;
  std::int64_t numel;
  void* out;  // contiguous
  RandomState state;
  std::int64_t low;     // for kInteger
  std::uint64_t range;  // for kInteger; at least 1
};

// The number of blocks by which such a call advances the offset.
std::int64_t RandomBlocks(RandomOp op, DType dtype, std::int64_t numel,
                          std::uint64_t range);

// ---- Products.

// c = a b, row-major, `batch` times. With transpose_a, a is stored as its
// transpose, (k, m) with rows of lda elements; likewise b. The strides, in
// elements, lead from one matrix of the batch to the next; 0 repeats it.
// float32 and float64. c does not overlap a or b.
struct MatMulArgs {
  DType dtype;
  bool transpose_a;
  bool transpose_b;
  std::int64_t m, n, k;
  const void* a;
  std::int64_t lda;
  const void* b;
  std::int64_t ldb;
  void* c;
  std::int64_t ldc;
  std::int64_t batch = 1;
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t c_stride = 0;
};

// ---- Moving elements. All operands are contiguous.

// `data` holds `outer` rows of `bytes` bytes each.
struct CatPiece {
  const void* data;
  std::int64_t bytes;
};

// Row i of out is row i of each piece, one after the other.
struct CatArgs {
  std::int64_t outer;
  void* out;
  std::int64_t element_size;  // bytes; a piece's rows are a multiple of it
  absl::Span<const CatPiece> pieces;  // copied
};

// in is (outer, size, inner). kSelect (torch.index_select): index is (count),
//   out[o, i, j] = in[o, index[i], j].
// kGather (torch.gather): index is, as out, (outer, count, inner),
//   out[o, i, j] = in[o, index[o, i, j], j].
// An index outside [0, size) fails late.
enum class IndexOp { kSelect, kGather };

struct IndexArgs {
  IndexOp op;
  std::int64_t element_size;  // bytes
  void* out;
  const void* in;
  const std::int64_t* index;
  std::int64_t outer, size, count, inner;
};

// ---- Neural networks. All operands are contiguous, float32 or float64, images
// in PyTorch's order (batch, channels, height, width). No output overlaps an
// input, unless said.

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
  kMax,  // the largest of the window without its padding; NaN if it has one
  kAvgGradient,
  // The first of the largest, in reading order, or the last NaN gets it.
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
  // out: the statistics of x, which also move the running values, if there are
  // any (running_values.h). count is at least 1.
  kStatistics,
  // out = xhat * weight + bias. weight and bias are (channels).
  kForward,
  // out, (2, channels): for each channel the sum of dy, which is the gradient
  // of the bias, and the sum of dy * xhat, the gradient of the weight.
  kSums,
  // out: the gradient of x. If the statistics are those of x (training), it is
  //   weight / sqrt(variance + eps)
  //     * (dy - sums[0] / count - xhat * sums[1] / count).
  // If they are constants, sums is null and nothing is subtracted from dy.
  kInputGradient,
};

// Arguments that a pass does not use are null. A task has no room for those of
// all passes, so kStatistics uses two pointers otherwise.
struct BatchNormArgs {
  BatchNormPass pass;
  DType dtype;
  std::int64_t batch, channels, inner;
  double eps;
  void* out;
  const void* x;
  const void* statistics = nullptr;
  union {
    const void* weight = nullptr;
    void* running_mean;  // (channels), as running_var; or null
  };
  union {
    const void* bias = nullptr;
    void* running_var;
  };
  const void* dy = nullptr;
  const void* sums = nullptr;
  double momentum = 0;  // of kStatistics
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

// The same for each of several arrays. Apart from its own x, no out overlaps
// another operand. If beta is 0, a GPU gets a launch for each.
struct AxpbyPart {
  std::int64_t numel;
  void* out;
  const void* x;
};

struct AxpbyListArgs {
  DType dtype;
  double alpha, beta;
  absl::Span<const AxpbyPart> parts;  // copied
};

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_KERNELS_H_
