// Reductions: sums, means, extremes, softmax.
//
//   Tensor total = Sum(x);              // of all elements, shape ()
//   Tensor means = Mean(x, {0, 2});     // over two dimensions
//   Tensor rows = Max(x, -1, /*keepdim=*/true);
//
// Asynchronous. Dimensions may be counted from the end; none stands for all.
// With keepdim a reduced dimension stays, with size 1. The order of the
// additions is fixed: the result is the same whatever the number of cores.
// Invalid arguments throw std::invalid_argument at the call.

#ifndef D2L_COMMON_OPS_REDUCTION_H_
#define D2L_COMMON_OPS_REDUCTION_H_

#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "common/base/source_location.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {

// One dimension, several, or none.
class Dims {
 public:
  Dims() = default;
  Dims(int dim) : dims_{dim} {}                           // NOLINT
  Dims(std::initializer_list<int> dims) : dims_(dims) {}  // NOLINT

  void Add(int dim) { dims_.push_back(dim); }
  bool empty() const { return dims_.empty(); }
  const int* begin() const { return dims_.data(); }
  const int* end() const { return dims_.data() + dims_.size(); }

 private:
  absl::InlinedVector<int, kMaxRank> dims_;
};

// The sum of integers is int64.
Tensor Sum(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
           SourceLocation at = SourceLocation::Current());
// For float32 and float64. The mean of no elements is NaN.
Tensor Mean(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
            SourceLocation at = SourceLocation::Current());
// The extreme values (torch.amax, torch.amin); NaN if there is one. A dimension
// that is reduced must not be empty.
Tensor Max(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
           SourceLocation at = SourceLocation::Current());
Tensor Min(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
           SourceLocation at = SourceLocation::Current());
// The int64 index of the largest element along one dimension, or among all row
// by row: the first of equal ones, or the first NaN. As for Max, no dimension
// may be empty.
Tensor ArgMax(const Tensor& x, const Dims& dims = {}, bool keepdim = false,
              SourceLocation at = SourceLocation::Current());

// exp(x) / sum(exp(x)) along a dimension, and its logarithm. float32, float64.
Tensor Softmax(const Tensor& x, int dim,
               SourceLocation at = SourceLocation::Current());
Tensor LogSoftmax(const Tensor& x, int dim,
                  SourceLocation at = SourceLocation::Current());

}  // namespace d2l

#endif  // D2L_COMMON_OPS_REDUCTION_H_
