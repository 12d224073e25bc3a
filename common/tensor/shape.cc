#include "common/tensor/shape.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace d2l {

void Shape::ThrowTooManyDimensions(std::size_t rank) {
  throw std::invalid_argument(absl::StrFormat(
      "[shape] %d dimensions asked for; a tensor has at most %d", rank,
      kMaxRank));
}

Shape Shape::Filled(int rank, std::int64_t size) {
  if (rank > kMaxRank) ThrowTooManyDimensions(rank);
  Shape shape;
  shape.rank_ = rank;
  std::fill_n(shape.sizes_.begin(), rank, size);
  return shape;
}

std::string Shape::ToString() const {
  return absl::StrCat("(", absl::StrJoin(begin(), end(), ", "), ")");
}

std::optional<Shape> Shape::Parse(std::string_view text) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') {
    return std::nullopt;
  }
  Shape shape;
  if (text == "()") return shape;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  for (;;) {
    if (shape.rank_ == kMaxRank) return std::nullopt;
    const auto [next, error] =
        std::from_chars(at, end, shape.sizes_[shape.rank_++]);
    if (error != std::errc()) return std::nullopt;
    if (next == end) return shape;
    if (end - next < 2 || next[0] != ',' || next[1] != ' ') return std::nullopt;
    at = next + 2;
  }
}

std::int64_t CheckedNumel(const char* operation, const Shape& shape,
                          std::int64_t bytes_per_element) {
  std::int64_t numel = 1;
  bool overflow = false;
  bool zero = false;
  for (const std::int64_t size : shape) {
    if (size < 0) {
      throw std::invalid_argument(absl::StrFormat("[%s] a size is negative: %s",
                                                  operation, shape.ToString()));
    }
    zero = zero || size == 0;
    overflow = __builtin_mul_overflow(numel, size, &numel) || overflow;
  }
  std::int64_t bytes;
  overflow =
      __builtin_mul_overflow(numel, bytes_per_element, &bytes) || overflow;
  // An empty tensor needs no memory, however long its other sides are.
  if (zero) return 0;
  if (overflow) {
    throw std::invalid_argument(absl::StrFormat(
        "[%s] %s has more elements than 64 bits can count the bytes of",
        operation, shape.ToString()));
  }
  return numel;
}

Shape ContiguousStrides(const Shape& shape) {
  Shape strides = Shape::Filled(shape.rank(), 1);
  std::uint64_t stride = 1;  // wraps around in empty shapes, where it is unused
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = static_cast<std::int64_t>(stride);
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

Shape BroadcastShapes(const char* operation, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result = Shape::Filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t in_a = i <= a.rank() ? a[a.rank() - i] : 1;
    const std::int64_t in_b = i <= b.rank() ? b[b.rank() - i] : 1;
    if (in_a != in_b && in_a != 1 && in_b != 1) {
      throw std::invalid_argument(absl::StrFormat(
          "[%s] shapes %s and %s do not broadcast: %d against %d in dimension "
          "%d from the end",
          operation, a.ToString(), b.ToString(), in_a, in_b, i));
    }
    result[rank - i] = in_a == 1 ? in_b : in_a;
  }
  return result;
}

}  // namespace d2l
