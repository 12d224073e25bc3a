// Scalar: one number, integer or floating-point, kept exactly (PyTorch's
// Scalar).
//
//   Scalar two = 2;       // an integer
//   Scalar half = 0.5;
//   two.To<float>();      // 2.f
//   half.FitsIn(DType::kInt64);  // false
//
// A trivially copyable value.

#ifndef D2L_COMMON_TENSOR_SCALAR_H_
#define D2L_COMMON_TENSOR_SCALAR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/tensor/dtype.h"

namespace d2l {

class Scalar {
 public:
  Scalar() = default;
  // Not explicit: any number is a Scalar. Unsigned numbers beyond int64 are
  // kept as the nearest double.
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Scalar(T value) {  // NOLINT
    if constexpr (std::is_integral_v<T>) {
      if (std::is_signed_v<T> || static_cast<std::uint64_t>(value) >> 63 == 0) {
        integer_ = static_cast<std::int64_t>(value);
        return;
      }
    }
    is_integer_ = false;
    number_ = static_cast<double>(value);
  }

  bool is_integer() const { return is_integer_; }
  // True if the number is a value of the dtype; every number counts as one of
  // a floating-point dtype, whatever it is rounded to.
  bool FitsIn(DType dtype) const;
  // The number as a T; for an integer T, only if it fits.
  template <typename T>
  T To() const {
    return is_integer_ ? static_cast<T>(integer_) : static_cast<T>(number_);
  }
  // The exact number, in as few digits as possible; integers have no point:
  // "2", "2.0", "0.1", "-0.0", "1e+300", "inf", "nan".
  std::string ToString() const;
  // Reads back what ToString writes (a NaN is any NaN); nullopt for other text.
  static std::optional<Scalar> Parse(std::string_view text);

 private:
  bool is_integer_ = true;
  union {
    std::int64_t integer_ = 0;
    double number_;
  };
};

}  // namespace d2l

#endif  // D2L_COMMON_TENSOR_SCALAR_H_
