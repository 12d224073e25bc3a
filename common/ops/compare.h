// Comparing whole tensors.
//
//   if (!Equal(fast, slow)) …
//   if (!AllClose(x, y, {1e-3})) …
//
// These calls wait for the values and throw AsyncError, as reads do (read.h).
// The tensors must have one dtype and be on one device; else
// std::invalid_argument. (Element by element: x == y, elementwise.h.)

#ifndef D2L_COMMON_OPS_COMPARE_H_
#define D2L_COMMON_OPS_COMPARE_H_

#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// Whether the shapes and all elements are the same (torch.equal). NaN is not
// equal to itself.
bool Equal(const Tensor& a, const Tensor& b,
           SourceLocation at = SourceLocation::Current());

// How far elements may differ: |a - b| <= absolute + relative * |b|.
struct Tolerance {
  double relative = 1e-5;
  double absolute = 1e-8;
  bool equal_nan = false;  // NaN counts as equal to NaN
};

// Whether all elements are within the tolerance (torch.allclose). Infinities
// are only close to themselves. Throws std::invalid_argument if the shapes
// differ.
bool AllClose(const Tensor& a, const Tensor& b, const Tolerance& tolerance = {},
              SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_COMPARE_H_
