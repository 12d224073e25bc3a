// Element-wise operations.
//
//   Tensor z = x * y + 2;
//   Tensor clipped = Where(z > 1, 1, z);
//   x += Exp(y);
//
// All are asynchronous and broadcast as NumPy's do. Two tensors must have the
// same dtype and be on the same device. A scalar takes the tensor's dtype and
// must be a value of it: to add 0.5 to integers, convert them first. Invalid
// operands, undefined tensors included, throw std::invalid_argument at the
// call.
//
// Names and results are PyTorch's: NaN is kept by Maximum, Minimum and Relu;
// `/` divides truly, so integers give float32; comparisons give uint8 (PyTorch
// has a bool for that), 1 or 0. Unlike PyTorch's, results are contiguous
// whatever the strides of the operands: Reshape(-T(x), {-1}) shares the memory
// of -T(x). An operand that may overlap the target of an operation in place is
// copied first, where PyTorch refuses.

#ifndef D2L_COMMON_OPS_ELEMENTWISE_H_
#define D2L_COMMON_OPS_ELEMENTWISE_H_

#include <type_traits>

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/tensor/scalar.h"
#include "common/tensor/tensor.h"

namespace d2l {

// One side of an operator, and its source line. An operator takes no default
// arguments, so it cannot capture the line of its use; the conversion of its
// operands can. An Operand lives as long as the expression; it does not own the
// tensor.
class Operand {
 public:
  // Not explicit: these conversions are what the class is for.
  Operand(const Tensor& tensor,  // NOLINT
          SourceLocation at = SourceLocation::Current())
      : tensor_(&tensor), at_(at) {}
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Operand(T scalar,  // NOLINT
          SourceLocation at = SourceLocation::Current())
      : scalar_(scalar), at_(at) {}

  // Null for a scalar.
  const Tensor* tensor() const { return tensor_; }
  Scalar scalar() const { return scalar_; }
  SourceLocation at() const { return at_; }

 private:
  const Tensor* tensor_ = nullptr;
  Scalar scalar_;
  SourceLocation at_;
};

// At least one side of each is a tensor.
Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);

// The quotient rounded down, as Python's //. Integers divided by zero fail
// late: waiting for the quotient throws AsyncError.
Tensor FloorDivide(const Operand& a, const Operand& b);
// a to the power b. A scalar b is used in double precision, as in PyTorch.
// Integers to a negative scalar are refused at the call; a negative element of
// b fails late.
Tensor Pow(const Operand& a, const Operand& b);
Tensor Maximum(const Operand& a, const Operand& b);
Tensor Minimum(const Operand& a, const Operand& b);

// Element-wise comparisons. To compare whole tensors see Equal and AllClose
// (compare.h).
Tensor operator==(const Operand& a, const Operand& b);
Tensor operator!=(const Operand& a, const Operand& b);
Tensor operator<(const Operand& a, const Operand& b);
Tensor operator<=(const Operand& a, const Operand& b);
Tensor operator>(const Operand& a, const Operand& b);
Tensor operator>=(const Operand& a, const Operand& b);

// In place: the memory that x shares with other handles changes too. The
// result must have x's shape and dtype.
Tensor& operator+=(Tensor& x, const Operand& y);
Tensor& operator-=(Tensor& x, const Operand& y);
Tensor& operator*=(Tensor& x, const Operand& y);
Tensor& operator/=(Tensor& x, const Operand& y);

// a where the condition, a uint8 tensor, is not 0; else b (torch.where). At
// least one of a and b is a tensor.
Tensor Where(const Tensor& condition, const Operand& a, const Operand& b,
             SourceLocation at = SourceLocation::Current());

// For any dtype.
Tensor operator-(const Operand& x);
Tensor Abs(const Tensor& x, SourceLocation at = SourceLocation::Current());
Tensor Relu(const Tensor& x, SourceLocation at = SourceLocation::Current());
Tensor Square(const Tensor& x, SourceLocation at = SourceLocation::Current());

// For float32 and float64. kernels/testing/unary_cases.cc says how far each may
// be from the true value, in units in the last place; its tests measure it.
Tensor Exp(const Tensor& x, SourceLocation at = SourceLocation::Current());
Tensor Log(const Tensor& x, SourceLocation at = SourceLocation::Current());
Tensor Sqrt(const Tensor& x, SourceLocation at = SourceLocation::Current());
Tensor Tanh(const Tensor& x, SourceLocation at = SourceLocation::Current());
Tensor Sigmoid(const Tensor& x, SourceLocation at = SourceLocation::Current());
// x P(X < x) for X of the standard normal distribution: PyTorch's gelu, but
// -infinity gives the limit, -0.
Tensor Gelu(const Tensor& x, SourceLocation at = SourceLocation::Current());

// y becomes alpha * x + beta * y, in one pass. float32 or float64, of one
// shape.
void AxpbyInPlace(const Tensor& y, double alpha, const Tensor& x, double beta,
                  SourceLocation at = SourceLocation::Current());
// The same for each y and its x, as if one after the other. Unless a y overlaps
// another's operands, the contiguous y of one device and dtype are updated by
// one operation (torch._foreach_add_): if one of them is refused, none of them
// is changed, and if one x has failed, all of them fail.
void AxpbyInPlace(absl::Span<const Tensor> ys, double alpha,
                  absl::Span<const Tensor> xs, double beta,
                  SourceLocation at = SourceLocation::Current());
// All elements become `value` (torch.Tensor.fill_).
void FillInPlace(const Tensor& x, Scalar value,
                 SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_ELEMENTWISE_H_
