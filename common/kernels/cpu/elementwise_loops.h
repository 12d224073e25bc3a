// The loops of the element-wise kernels over contiguous elements, one for each
// function, dtype and kind of operands, compiled for each kind of vector.
//
//   LoopFn add = BinaryLoop(BinaryOp::kAdd, DType::kFloat32,
//                           Operands::kVectorVector);
//   add(out, a, b, nullptr, n);  // out[i] = a[i] + b[i] for i in [0, n)
//
// All of them have one type, so that the code that runs them
// (elementwise_run.h) is written once. Loops have no state; out may be an
// operand's memory.
// The functions throw std::invalid_argument for a dtype that the operation does
// not take (op_tables.h).

#ifndef D2L_COMMON_KERNELS_CPU_ELEMENTWISE_LOOPS_H_
#define D2L_COMMON_KERNELS_CPU_ELEMENTWISE_LOOPS_H_

#include <cstdint>

#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cpu {

// An operand is a vector of n elements or one number, as the choice of the loop
// says. Operands that the function does not have are ignored.
using LoopFn = void (*)(void* out, const void* a, const void* b, const void* c,
                        std::int64_t n);

// Whether each of two operands is a vector of elements or one number.
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

// The functions below check which vectors the processor has at each call, which
// takes a few nanoseconds.

// a is one number.
LoopFn FillLoop(DType dtype);
// out[i] = a + (c + i) * b: a and b are one number each, double for a
// floating-point dtype and int64 for others; c is one int64.
LoopFn ArangeLoop(DType dtype);
LoopFn CopyLoop(DType out_dtype, DType in_dtype);
LoopFn UnaryLoop(UnaryOp op, DType dtype);
// Raises to the power of an exponent other than 0. Null if kPow's loop is the
// fastest for this exponent.
LoopFn PowerLoop(double exponent, DType dtype);
// Raises float32 to the power b, one double.
LoopFn PowerOfFloatLoop();
// There are no loops for kGreater and kGreaterEqual: exchange the operands.
// There is none for kScalarScalar, and kScalarVector only if the operation does
// not commute. An integer divided by 0 is 0, and so is 0 to a negative power.
LoopFn BinaryLoop(BinaryOp op, DType dtype, Operands operands);
// a is the condition; `operands` describes b and c.
LoopFn WhereLoop(DType dtype, Operands operands);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_ELEMENTWISE_LOOPS_H_
