// Reading tensors: the host waits for the values and copies them.
//
//   double loss = Item(x);
//   std::int64_t label = Item<std::int64_t>(y);
//   std::vector<float> values = ToVector<float>(x);
//   std::cout << z;   // tensor([[3., 3.]], device='cpu:0')
//   std::string text = ToString(z);
//
// These calls wait until the operation that last wrote the tensor is done, no
// longer. They throw AsyncError if it failed or was skipped, every time they
// are called.

#ifndef D2L_COMMON_OPS_READ_H_
#define D2L_COMMON_OPS_READ_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// The elements, row by row. T is the tensor's element type; throws
// std::invalid_argument if it is not, or if the tensor is undefined.
template <typename T>
std::vector<T> ToVector(const Tensor& x,
                        SourceLocation at = SourceLocation::Current());

// The elements at the first and the last `edge` indices of each dimension that
// has more than 2 * edge, and at all indices of the others, row by row: what a
// summary prints. Reads no other elements, however many the tensor has. Errors
// as ToVector's.
template <typename T>
std::vector<T> EdgesToVector(const Tensor& x, std::int64_t edge,
                             SourceLocation at = SourceLocation::Current());

// The only element of a tensor of one element, of whatever dtype, as a double
// or, exact whatever its size, as a std::int64_t (torch.Tensor.item). Throws
// std::invalid_argument for more or fewer elements.
template <typename T = double>
T Item(const Tensor& x, SourceLocation at = SourceLocation::Current());

// Waits until x has been computed (MXNet's wait_to_read), and for nothing
// that was requested after it.
void WaitToRead(const Tensor& x, SourceLocation at = SourceLocation::Current());

// PyTorch's repr, character for character: four digits, scientific where
// numbers differ too much in size, 80 columns, and beyond 1000 elements three
// at each end of a dimension (torch/_tensor_str.py). Unlike PyTorch it always
// names the device: here even a CPU device is one among several, with a queue
// of its own.
std::string ToString(const Tensor& x,
                     SourceLocation at = SourceLocation::Current());
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_READ_H_
