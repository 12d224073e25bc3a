// Element-wise arithmetic and products.
//
//   Tensor z = x * y + 2;
//   x += y;
//   Tensor c = MatMul(a, b);
//
// All are asynchronous. Element-wise operations broadcast as NumPy's do. A
// scalar is a double, takes the tensor's dtype, and must be representable in
// it; two tensors must have the same dtype and be on the same device. What does
// not go together throws std::invalid_argument.

#ifndef D2L_COMMON_OPS_ARITHMETIC_H_
#define D2L_COMMON_OPS_ARITHMETIC_H_

#include "common/base/source_location.h"
#include "common/ops/operand.h"
#include "common/tensor/tensor.h"

namespace d2l {

// At least one side is a tensor.
Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a);

// In place: the memory that x shares with other handles changes too. The
// result must have x's shape.
Tensor& operator+=(Tensor& x, const Operand& y);
Tensor& operator-=(Tensor& x, const Operand& y);
Tensor& operator*=(Tensor& x, const Operand& y);

// The product of two matrices, (n, k) and (k, m) (torch.matmul for two
// dimensions), float32 or float64.
Tensor MatMul(const Tensor& a, const Tensor& b,
              SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_ARITHMETIC_H_
