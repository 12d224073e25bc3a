// The loops of the element-wise kernels over contiguous elements, one for each
// function, dtype and kind of operands, compiled for each kind of vector.
//
//   LoopFn add = BinaryLoop(BinaryOp::kAdd, DType::kFloat32,
//                           Operands::kVectorVector);
//   add(out, a, b, nullptr, n);  // out[i] = a[i] + b[i] for i in [0, n)
//
// All of them have one type, so that what drives them (elementwise_run.h) is
// written once. Loops have no state; out may be the same memory as an operand.
// The functions throw std::invalid_argument for a dtype that the operation does
// not take (op_tables.h).

#ifndef D2L_COMMON_KERNELS_CPU_ELEMENTWISE_LOOPS_H_
#define D2L_COMMON_KERNELS_CPU_ELEMENTWISE_LOOPS_H_

#include <cstdint>

#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cpu {

// An operand is a vector of n elements or, where the loop is chosen for it, one
// number. Operands that the function does not have are ignored.
using LoopFn = void (*)(void* out, const void* a, const void* b, const void* c,
                        std::int64_t n);

// What two operands are: vectors of elements, or one number.
enum class Operands {
  kVectorVector,
  kScalarVector,
  kVectorScalar,
  kScalarScalar
};

constexpr Operands OperandsOf(bool first_is_scalar, bool second_is_scalar) {
  if (first_is_scalar) {
    return second_is_scalar ? Operands::kScalarScalar : Operands::kScalarVector;
  }
  return second_is_scalar ? Operands::kVectorScalar : Operands::kVectorVector;
}

// The functions below look at what vectors the processor has each time: a few
// nanoseconds.

// a is one number.
LoopFn FillLoop(DType dtype);
// out[i] = a + (c + i) * b: a and b are one number each, double for a
// floating-point dtype and int64 for others; c is one int64.
LoopFn ArangeLoop(DType dtype);
LoopFn CopyLoop(DType out_dtype, DType in_dtype);
LoopFn UnaryLoop(UnaryOp op, DType dtype);
// To the power of an exponent other than 0 for which there is something faster
// than kPow; null if there is not.
LoopFn PowerLoop(double exponent, DType dtype);
// float32 to the power b, one double.
LoopFn PowerOfFloatLoop();
// Not kGreater and kGreaterEqual: exchange the operands. Not kScalarScalar;
// kScalarVector only if the operation does not commute. An integer divided by 0
// is 0, and so is one to the power of a negative one.
LoopFn BinaryLoop(BinaryOp op, DType dtype, Operands operands);
// a is the condition; `operands` is about b and c.
LoopFn WhereLoop(DType dtype, Operands operands);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_ELEMENTWISE_LOOPS_H_
