// Shape: the sizes of a tensor's dimensions, outermost first.
//
//   Shape shape = {2, 3};
//   shape.rank();      // 2
//   shape[1];          // 3
//   shape.numel();     // 6
//   shape.ToString();  // "(2, 3)"
//
// A value of at most kMaxRank numbers, without a heap allocation. The same type
// holds strides. Sizes are checked where they are used: see CheckedNumel.

#ifndef D2L_COMMON_TENSOR_SHAPE_H_
#define D2L_COMMON_TENSOR_SHAPE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace d2l {

inline constexpr int kMaxRank = 8;

class Shape {
 public:
  // No dimensions: the shape of a scalar.
  Shape() = default;
  // Throw std::invalid_argument for more than kMaxRank sizes.
  Shape(std::initializer_list<std::int64_t> sizes)
      : Shape(absl::MakeConstSpan(sizes.begin(), sizes.size())) {}
  explicit Shape(absl::Span<const std::int64_t> sizes) {
    if (sizes.size() > kMaxRank) ThrowTooManyDimensions(sizes.size());
    rank_ = static_cast<int>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  }
  // A shape of `rank` dimensions, each of this size.
  static Shape Filled(int rank, std::int64_t size);
  // Adds an innermost dimension.
  void push_back(std::int64_t size) {
    if (rank_ == kMaxRank) ThrowTooManyDimensions(rank_ + 1);
    sizes_[rank_++] = size;
  }

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t operator[](int i) const { return sizes_[i]; }
  std::int64_t& operator[](int i) { return sizes_[i]; }
  const std::int64_t* begin() const { return sizes_.data(); }
  const std::int64_t* end() const { return sizes_.data() + rank_; }
  const std::int64_t* data() const { return sizes_.data(); }
  std::size_t size() const { return rank_; }

  // The product of the sizes; 1 for a scalar.
  std::int64_t numel() const {
    // Unsigned: (2^40, 2^40, 0) is an empty shape, not an overflow.
    std::uint64_t product = 1;
    for (const std::int64_t size : *this) product *= size;
    return static_cast<std::int64_t>(product);
  }

  // "(2, 3)", "(5)", "()".
  std::string ToString() const;
  // Reads ToString's text; nullopt for any other. A size may be negative.
  static std::optional<Shape> Parse(std::string_view text);

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    // Not std::equal: its call of memcmp costs more than comparing so few
    // sizes.
    for (int i = 0; i < a.rank_; ++i) {
      if (a.sizes_[i] != b.sizes_[i]) return false;
    }
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    return out << shape.ToString();
  }

 private:
  [[noreturn]] static void ThrowTooManyDimensions(std::size_t rank);

  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> sizes_;  // the first rank_ are set
};

// The number of elements. Throws std::invalid_argument, naming the operation,
// if a size is negative or the number of bytes overflows 64 bits.
std::int64_t CheckedNumel(const char* operation, const Shape& shape,
                          std::int64_t bytes_per_element);

// Row-major strides: {12, 4, 1} for {2, 3, 4}. A dimension of size 0 counts as
// 1.
Shape ContiguousStrides(const Shape& shape);

// The shape of an element-wise operation on both: dimensions are aligned at
// the end, and a missing one or one of size 1 is repeated (NumPy's
// broadcasting rules). Throws std::invalid_argument, naming the operation, if
// two sizes differ.
Shape BroadcastShapes(const char* operation, const Shape& a, const Shape& b);

}  // namespace d2l

#endif  // D2L_COMMON_TENSOR_SHAPE_H_
