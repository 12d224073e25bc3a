// The loops of the element-wise kernels over contiguous elements, one for each
// function, type and kind of operands, compiled for each kind of vector.
//
//   Block add = BinaryBlock(BinaryOp::kAdd, DType::kFloat32, kBothArrays);
//   add(out, a, b, nullptr, n);  // out[i] = a[i] + b[i] for i in [0, n)
//
// All of them have one type, so that what drives them (over many cores, over
// rows, past the caches) is written once. Loops have no state; out may be the
// same memory as an operand.

#ifndef D2L_COMMON_KERNELS_CPU_ELEMENTWISE_BLOCKS_H_
#define D2L_COMMON_KERNELS_CPU_ELEMENTWISE_BLOCKS_H_

#include <cstdint>

#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cpu {

// An operand is an array of n elements or, where the block is chosen for it,
// one number. Operands that the function does not have are ignored.
using Block = void (*)(void* out, const void* a, const void* b, const void* c,
                       std::int64_t n);

// Which of two operands is one number.
enum Numbers { kBothArrays, kFirstIsNumber, kSecondIsNumber, kBothAreNumbers };

// The functions below look at what vectors the processor has each time: a few
// nanoseconds.

// a is one number.
Block FillBlock(DType dtype);
// out[i] = a + (c + i) * b: a and b are one number each, double for a
// floating-point dtype and int64 for others; c is one int64.
Block ArangeBlock(DType dtype);
Block CopyBlock(DType out_dtype, DType in_dtype);
Block UnaryBlock(UnaryOp op, DType dtype);
// To the power of an exponent other than 0 for which there is something faster
// than kPow; null if there is not.
Block PowerBlock(double exponent, DType dtype);
// Not kGreater and kGreaterEqual: exchange the operands. Not kBothAreNumbers.
// An integer divided by 0 is 0, and so is one to the power of a negative one.
Block BinaryBlock(BinaryOp op, DType dtype, Numbers numbers);
// a is the condition; `numbers` is about b and c.
Block WhereBlock(DType dtype, Numbers numbers);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_ELEMENTWISE_BLOCKS_H_
