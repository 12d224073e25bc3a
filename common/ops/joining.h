// Joining tensors, and picking elements by index.
//
//   Tensor batch = Stack(images);            // (n, 28, 28)
//   Tensor cube = DStack(matrices);          // (10, 10, n)
//   Tensor rows = IndexSelect(x, 0, indices);
//
// Asynchronous; the results are copies. Names and rules are PyTorch's; a
// dimension may be counted from the end. The tensors to join must be of one
// dtype and on one device. Invalid arguments throw std::invalid_argument at the
// call. Only the values of indices are checked late: waiting for the result
// throws AsyncError, which names an index that is out of range.

#ifndef D2L_COMMON_OPS_JOINING_H_
#define D2L_COMMON_OPS_JOINING_H_

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/tensor/tensor.h"

namespace d2l {

// Concatenates along a dimension; the other sizes must agree.
Tensor Cat(absl::Span<const Tensor> tensors, int dim = 0,
           SourceLocation at = SourceLocation::Current());
// Joins tensors of one shape along a new dimension.
Tensor Stack(absl::Span<const Tensor> tensors, int dim = 0,
             SourceLocation at = SourceLocation::Current());
// Joins along the first dimension; vectors become the rows of a matrix.
Tensor VStack(absl::Span<const Tensor> tensors,
              SourceLocation at = SourceLocation::Current());
// Joins along the second dimension; vectors become one vector.
Tensor HStack(absl::Span<const Tensor> tensors,
              SourceLocation at = SourceLocation::Current());
// Joins along the third dimension: (n, m) counts as (n, m, 1), (n) as (1, n,
// 1).
Tensor DStack(absl::Span<const Tensor> tensors,
              SourceLocation at = SourceLocation::Current());

// x with its dimension `dim` replaced by the indices, an int64 vector:
// out[i, j] = x[index[i], j] for dim 0.
Tensor IndexSelect(const Tensor& x, int dim, const Tensor& index,
                   SourceLocation at = SourceLocation::Current());
// out[i, j] = x[index[i, j], j] for dim 0. The index, int64, has as many
// dimensions as x, none longer than x's except `dim`; the result has its shape.
Tensor Gather(const Tensor& x, int dim, const Tensor& index,
              SourceLocation at = SourceLocation::Current());
// Their counterparts: `x` with each element of the source added where
// IndexSelect (torch.index_add) or Gather (torch.scatter_add) would take it
// from, one after the other. float32 or float64; the source has the shape of
// their result, or may be longer for ScatterAdd.
Tensor IndexAdd(const Tensor& x, int dim, const Tensor& index,
                const Tensor& source,
                SourceLocation at = SourceLocation::Current());
Tensor ScatterAdd(const Tensor& x, int dim, const Tensor& index,
                  const Tensor& source,
                  SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_JOINING_H_
