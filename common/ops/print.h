// Printing tensors, character for character as PyTorch does.
//
//   std::cout << z;   // tensor([[3., 3.]], device='cpu:0')
//   std::string text = ToString(z);
//
// Printing reads the tensor, so it waits for it and throws as ToVector does
// (common/ops/read.h). Unlike PyTorch it always names the device: here even a
// CPU device is one among several, with a queue of its own.

#ifndef D2L_COMMON_OPS_PRINT_H_
#define D2L_COMMON_OPS_PRINT_H_

#include <ostream>
#include <string>

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// PyTorch's repr: four digits, scientific where numbers differ too much in
// size, 80 columns, and beyond 1000 elements three at each end of a
// dimension. Source: torch/_tensor_str.py.
std::string ToString(const Tensor& x,
                     SourceLocation at = SourceLocation::Current());

std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRINT_H_
