// Views of a tensor's memory. Nothing is copied or launched; writing to a view
// writes to the tensor.
//
//   Tensor rows = Slice(x, 0, 2, 5);       // x[2:5]
//   Tensor column = Select(x, 1, 0);       // x[:, 0]
//   Tensor flat = Reshape(x, {-1});
//
// Names and rules are PyTorch's. A dimension may be counted from the end: -1 is
// the last. Invalid arguments throw std::invalid_argument at the call.
//
// x[3] and x[{0, kAll}] are in indexing.h.

#ifndef D2L_COMMON_OPS_VIEWS_H_
#define D2L_COMMON_OPS_VIEWS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {

// x's elements, row by row, in another shape; one size may be -1, for what is
// left. Throws if x's memory has no such view.
Tensor View(const Tensor& x, const Shape& shape,
            SourceLocation at = SourceLocation::Current());
// The view, or, where x's memory has none, a copy of that shape.
Tensor Reshape(const Tensor& x, const Shape& shape,
               SourceLocation at = SourceLocation::Current());

// The transpose of a matrix; a vector or a scalar is returned as it is.
Tensor T(const Tensor& x, SourceLocation at = SourceLocation::Current());
// Exchanges two dimensions.
Tensor Transpose(const Tensor& x, int dim0, int dim1,
                 SourceLocation at = SourceLocation::Current());

// Elements start, start + step, ... before `end` of a dimension. Negative
// bounds count from the end; bounds outside are moved to the edge. step is at
// least 1.
Tensor Slice(const Tensor& x, int dim, std::int64_t start = 0,
             std::int64_t end = std::numeric_limits<std::int64_t>::max(),
             std::int64_t step = 1,
             SourceLocation at = SourceLocation::Current());
// One index of a dimension, which disappears. A negative index counts from the
// end.
Tensor Select(const Tensor& x, int dim, std::int64_t index,
              SourceLocation at = SourceLocation::Current());

// Removes the dimensions of size 1.
Tensor Squeeze(const Tensor& x, SourceLocation at = SourceLocation::Current());
// Removes this dimension if its size is 1.
Tensor Squeeze(const Tensor& x, int dim,
               SourceLocation at = SourceLocation::Current());
// Adds a dimension of size 1 before `dim`; -1 adds it behind the last.
Tensor Unsqueeze(const Tensor& x, int dim,
                 SourceLocation at = SourceLocation::Current());

// Repeats dimensions of size 1, and adds new ones in front; -1 leaves a size as
// it is.
Tensor Expand(const Tensor& x, const Shape& shape,
              SourceLocation at = SourceLocation::Current());

// Pieces of `size` along a dimension; the last may be smaller (torch.split).
std::vector<Tensor> Split(const Tensor& x, std::int64_t size, int dim = 0,
                          SourceLocation at = SourceLocation::Current());
// Pieces of these sizes, which add up to the dimension's.
std::vector<Tensor> SplitWithSizes(
    const Tensor& x, absl::Span<const std::int64_t> sizes, int dim = 0,
    SourceLocation at = SourceLocation::Current());

// dim, or dim + rank if it is negative. Throws std::invalid_argument, naming
// the operation, outside [-rank, rank).
int WrapDim(const char* operation, int dim, int rank);

namespace internal {
// Returns x itself where a function's view would equal it; under a NoGradGuard
// a view, since that is a constant.
Tensor WholeView(const Tensor& x, SourceLocation at);
}  // namespace internal

}  // namespace d2l

#endif  // D2L_COMMON_OPS_VIEWS_H_
