#include "common/tensor/scalar.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace d2l {

bool Scalar::FitsIn(DType dtype) const {
  constexpr std::int64_t kMaxByte = std::numeric_limits<std::uint8_t>::max();
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
      return true;
    case DType::kInt64:
      // 2^63 is the first double beyond int64.
      return is_integer_ || (number_ >= -0x1p63 && number_ < 0x1p63 &&
                             number_ == std::trunc(number_));
    case DType::kUInt8:
      return is_integer_ ? integer_ >= 0 && integer_ <= kMaxByte
                         : number_ >= 0 && number_ <= kMaxByte &&
                               number_ == std::trunc(number_);
  }
  return false;
}

std::string Scalar::ToString() const {
  if (is_integer_) return absl::StrCat(integer_);
  char text[32];
  const auto [end, error] =
      std::to_chars(std::begin(text), std::end(text), number_);
  std::string result(text, end);
  // So that it does not read as an integer.
  if (result.find_first_not_of("-0123456789") == std::string::npos) {
    result += ".0";
  }
  return result;
}

std::optional<Scalar> Scalar::Parse(std::string_view text) {
  const char* const end = text.data() + text.size();
  std::int64_t integer;
  const auto as_integer = std::from_chars(text.data(), end, integer);
  if (as_integer.ec == std::errc() && as_integer.ptr == end) {
    return Scalar(integer);
  }
  double number;
  const auto as_number = std::from_chars(text.data(), end, number);
  if (as_number.ec != std::errc() || as_number.ptr != end ||
      text.find_first_of(".en") == std::string_view::npos) {
    return std::nullopt;
  }
  return Scalar(number);
}

}  // namespace d2l
