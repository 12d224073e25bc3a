#include "common/ops/indexing.h"

#include <initializer_list>

#include "common/ops/copy.h"
#include "common/ops/elementwise.h"
#include "common/ops/primitive/reject.h"
#include "common/ops/views.h"

namespace d2l {
namespace {

bool IsAll(const Index& index) {
  const Range& range = index.range();
  return index.is_range() && range.start == kAll.start &&
         range.end == kAll.end && range.step == kAll.step;
}

// x with one index applied to `dim`.
Tensor ApplyIndex(const Tensor& x, const Index& index, int dim) {
  if (!index.is_range()) return Select(x, dim, index.index(), index.at());
  const Range& range = index.range();
  return Slice(x, dim, range.start, range.end, range.step, index.at());
}

}  // namespace

TensorSlice Tensor::operator[](const Index& index) const {
  return TensorSlice(ApplyIndex(*this, index, 0), index.at());
}

TensorSlice Tensor::operator[](std::initializer_list<Index> indices) const {
  const SourceLocation at =
      indices.size() == 0 ? SourceLocation() : indices.begin()->at();
  if (defined() && static_cast<int>(indices.size()) > dim()) {
    RejectAt(at, "[index] %d indices into %s, which has %d dimension%s",
             indices.size(), shape(), dim(), dim() == 1 ? "" : "s");
  }
  Tensor part;
  const Tensor* from = this;
  int next = 0;
  for (const Index& index : indices) {
    if (!IsAll(index)) {
      part = ApplyIndex(*from, index, next);
      from = &part;
    }
    next += index.is_range();
  }
  return TensorSlice(from == this ? internal::WholeView(*this, at) : part, at);
}

const TensorSlice& TensorSlice::operator=(const Operand& value) const {
  if (value.tensor() == nullptr) {
    FillInPlace(*this, value.scalar(), value.at());
  } else {
    CopyTo(*value.tensor(), *this, /*non_blocking=*/false, value.at());
  }
  return *this;
}

const TensorSlice& TensorSlice::operator=(const TensorSlice& value) const {
  CopyTo(value, *this, /*non_blocking=*/false, at_.known() ? at_ : value.at_);
  return *this;
}

void operator+=(const TensorSlice& x, const Operand& y) {
  Tensor view = x;
  view += y;
}
void operator-=(const TensorSlice& x, const Operand& y) {
  Tensor view = x;
  view -= y;
}
void operator*=(const TensorSlice& x, const Operand& y) {
  Tensor view = x;
  view *= y;
}
void operator/=(const TensorSlice& x, const Operand& y) {
  Tensor view = x;
  view /= y;
}

}  // namespace d2l
