// Matrix products.
//
//   Tensor c = MatMul(a, b);
//   Tensor gram = MatMul(x, T(x));  // T makes a view: nothing is copied
//
// Asynchronous. float32 and float64, both operands of one dtype and on one
// device; else std::invalid_argument. An operand may be a transposed or sliced
// view: only one whose rows and columns both have gaps is copied first.

#ifndef D2L_COMMON_OPS_MATMUL_H_
#define D2L_COMMON_OPS_MATMUL_H_

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// torch.matmul:
//   (n, k) @ (k, m)            gives (n, m)
//   (k) @ (k)                  gives (), the dot product
//   (k) @ (k, m), (n, k) @ (k) give (m), (n)
//   (..., n, k) @ (..., k, m)  gives (..., n, m), the leading dimensions
//                              broadcast
Tensor MatMul(const Tensor& a, const Tensor& b,
              SourceLocation at = SourceLocation::Current());

// The sum of the products of two vectors, (k) and (k) (torch.dot).
Tensor Dot(const Tensor& a, const Tensor& b,
           SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_MATMUL_H_
