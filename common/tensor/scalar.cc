#include "common/tensor/scalar.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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
  return is_integer_ ? absl::StrCat(integer_)
                     : absl::StrFormat("%.17g", number_);
}

}  // namespace d2l
