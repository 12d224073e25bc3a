// x[...]: a part of a tensor that can be read and assigned to.
//
//   Tensor row = x[3];
//   x[3] = row * 2;                  // writes to x
//   x[{kAll, 0}] = 1;                // a column: x[:, 0] = 1
//   x[{0, Range{1, 4}}] += y;        // x[0, 1:4] += y
//
// An integer picks an index, and the dimension disappears; a Range keeps part
// of it, kAll all. Dimensions that are not named are kept. Negative numbers
// count from the end. Nothing is copied: the part is a view.
//
// Assigning writes to the memory, asynchronously, broadcast and converted as
// by CopyTo (copy.h); also a part to a part: x[0] = x[1]. `auto part = x[0]`
// keeps writing through when assigned to; `Tensor part = x[0]` does not.
//
// Errors: std::invalid_argument for an index outside the dimension, and for an
// assigned tensor that overlaps the part without being the same: x[{Range{1,
// 5}}] = x[{Range{0, 4}}].

#ifndef D2L_COMMON_OPS_INDEXING_H_
#define D2L_COMMON_OPS_INDEXING_H_

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "common/base/source_location.h"
#include "common/ops/elementwise.h"
#include "common/tensor/tensor.h"

namespace d2l {

// Elements from `start` up to, not including, `end`.
struct Range {
  std::int64_t start = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  std::int64_t step = 1;
};
inline constexpr Range kAll{};

// An index in the brackets, and its source line.
class Index {
 public:
  template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
  Index(T index, SourceLocation at = SourceLocation::Current())  // NOLINT
      : is_range_(false), range_{static_cast<std::int64_t>(index)}, at_(at) {}
  Index(const Range& range,  // NOLINT
        SourceLocation at = SourceLocation::Current())
      : is_range_(true), range_(range), at_(at) {}

  bool is_range() const { return is_range_; }
  std::int64_t index() const { return range_.start; }
  const Range& range() const { return range_; }
  SourceLocation at() const { return at_; }

 private:
  bool is_range_;
  Range range_;
  SourceLocation at_;
};

// The part: a view, which assignment writes through.
class TensorSlice : public Tensor {
 public:
  TensorSlice(Tensor view, SourceLocation at)
      : Tensor(std::move(view)), at_(at) {}
  TensorSlice(const TensorSlice&) = default;
  TensorSlice(TensorSlice&&) = default;

  const TensorSlice& operator=(const Operand& value) const;
  const TensorSlice& operator=(const TensorSlice& value) const;
  TensorSlice& operator=(const TensorSlice& value) {
    std::as_const(*this) = value;
    return *this;
  }

 private:
  SourceLocation at_;
};

void operator+=(const TensorSlice& x, const Operand& y);
void operator-=(const TensorSlice& x, const Operand& y);
void operator*=(const TensorSlice& x, const Operand& y);
void operator/=(const TensorSlice& x, const Operand& y);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_INDEXING_H_
