// Kernels: the arithmetic of a back end, on raw pointers and a stream.
//
//   Kernels& kernels = GetKernels(stream.device().type());
//   kernels.Fill(stream, OpLabel("ones"), DType::kFloat32, out, n, 1.0);
//
// A few families, each with an enum for its members; a family is one
// virtual function, which enqueues one operation on the stream and returns
// the operation's number in it. Nothing here knows a Tensor: shapes have been
// checked and memory allocated by common/ops, and the pointers stay valid
// until the operation has run (common/device/memory.h says why).
//
// An element-wise function is written once, in functors.h; the CPU loop and
// the CUDA kernel instantiate the same one.
//
// Thread-safety: all functions may be called from any thread.

#ifndef D2L_COMMON_KERNELS_KERNELS_H_
#define D2L_COMMON_KERNELS_KERNELS_H_

#include <cstdint>

#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace d2l::kernels {

enum class UnaryOp { kNegative };

enum class BinaryOp { kAdd, kSubtract, kMultiply };

// How an element-wise operation walks through memory that is not contiguous:
// a shape, and for each operand the strides, in elements, that go with it. A
// broadcast dimension has stride 0; so do all of a scalar's.
struct StridedLayout {
  Shape shape;
  Shape out;
  Shape a;
  Shape b;
};

// An operand: an address on the device, or, if that is null, one number.
struct Input {
  const void* data = nullptr;
  double scalar = 0;
};

struct UnaryArgs {
  UnaryOp op;
  DType dtype;
  std::int64_t numel;
  void* out;
  const void* a;
  const StridedLayout* layout;  // null: all contiguous; copied if it is kept
};

struct BinaryArgs {
  BinaryOp op;
  DType dtype;
  std::int64_t numel;
  void* out;
  Input a;
  Input b;
  const StridedLayout* layout;  // as above
};

// Where a generator stands; philox.h says which number each element is.
struct RandomState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};

// By how many blocks a call for so many numbers advances the offset.
std::int64_t RandomBlocks(DType dtype, std::int64_t numel);

// c = a b, row-major. With transpose_a, a is stored as its transpose, (k, m)
// with rows of lda elements; likewise b. float32 and float64.
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
};

class Kernels {
 public:
  virtual ~Kernels() = default;

  // out[0, numel) = value.
  virtual std::uint64_t Fill(Stream& stream, const OpLabel& label, DType dtype,
                             void* out, std::int64_t numel, double value) = 0;
  // Standard normal numbers; float32 and float64.
  virtual std::uint64_t RandomNormal(Stream& stream, const OpLabel& label,
                                     DType dtype, void* out, std::int64_t numel,
                                     RandomState state) = 0;
  virtual std::uint64_t Unary(Stream& stream, const OpLabel& label,
                              const UnaryArgs& args) = 0;
  virtual std::uint64_t Binary(Stream& stream, const OpLabel& label,
                               const BinaryArgs& args) = 0;
  virtual std::uint64_t MatMul(Stream& stream, const OpLabel& label,
                               const MatMulArgs& args) = 0;
};

// The kernels for streams of this type of device; they live as long as the
// process. Throws std::runtime_error if the binary has none for it.
Kernels& GetKernels(DeviceType type);

// For GetKernels.
Kernels& CpuKernels();

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_KERNELS_H_
