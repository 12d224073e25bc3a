// Operand: one side of an operator, and its source line.
//
//   Tensor operator+(const Operand& a, const Operand& b);
//   z = x + 2;  // both sides become Operands, which note this line
//
// An operator takes no default arguments, so it cannot capture the line of its
// use; the conversion of its operands can.
//
// An Operand lives as long as the expression; it does not own the tensor.

#ifndef D2L_COMMON_OPS_PRIMITIVE_OPERAND_H_
#define D2L_COMMON_OPS_PRIMITIVE_OPERAND_H_

#include <type_traits>

#include "common/base/source_location.h"
#include "common/tensor/scalar.h"
#include "common/tensor/tensor.h"

namespace d2l {

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

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_OPERAND_H_
