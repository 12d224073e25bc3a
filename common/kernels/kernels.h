// The kernels: the arithmetic of a back end, on raw pointers and a stream.
//
//   Enqueue(stream, OpLabel("ones"),
//           FillArgs{DType::kFloat32, n, out, 1.0, nullptr});  // enqueue.h
//
// A dozen families, whose operations are listed in op_tables.h; a family is the
// struct of its arguments, for which each back end has a kernel. Nothing here
// knows a Tensor: shapes have been checked and memory allocated by common/ops,
// and the pointers stay valid until the operation has run
// (common/device/memory/memory.h says why). Values (an index, a divisor) are
// checked by the kernel, which fails the operation: a late error.
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
// contiguous and has `numel` elements; else it is collapsed (layout.h), is
// copied if it is kept, and numel is its shape's, at least 1. An output may be
// the same memory as an input, element for element, but not overlap otherwise.

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
// fits the dtype. Not both operands are numbers.
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

// Over the middle dimension of a contiguous (outer, size, inner); float32 and
// float64. out may be in.
struct SoftmaxArgs {
  bool log;  // the logarithm of it
  DType dtype;
  void* out;
  const void* in;
  std::int64_t outer, size, inner;
};

// ---- Random numbers.

// Where a generator stands; philox.h says which number each element is.
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

// By how many blocks such a call advances the offset.
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

// ---- Moving elements about. All operands are contiguous.

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

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_KERNELS_H_
