// DType: the type of a tensor's elements, PyTorch's dtype.
//
//   DTypeSize(DType::kFloat32);     // 4
//   DTypeName(DType::kFloat32);     // "float32"
//   VisitDType(dtype, [&](auto zero) { using T = decltype(zero); … });

#ifndef D2L_COMMON_TENSOR_DTYPE_H_
#define D2L_COMMON_TENSOR_DTYPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

namespace d2l {

enum class DType : std::uint8_t { kFloat32, kFloat64, kInt64, kUInt8 };

// The bytes of an element.
constexpr std::size_t DTypeSize(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kUInt8:
      return 1;
  }
  return 0;
}

// "float32", "float64", "int64", "uint8".
constexpr const char* DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kInt64:
      return "int64";
    case DType::kUInt8:
      return "uint8";
  }
  return "unknown";
}

// The dtype of that name; nullopt if there is none.
inline std::optional<DType> DTypeNamed(std::string_view name) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kUInt8}) {
    if (name == DTypeName(dtype)) return dtype;
  }
  return std::nullopt;
}

constexpr bool IsFloatingPoint(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

inline std::ostream& operator<<(std::ostream& out, DType dtype) {
  return out << DTypeName(dtype);
}

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kFloat64;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::kInt64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::kUInt8;
};

// Calls f(T{}) with the C++ type T of the dtype, and returns its result.
template <typename F>
decltype(auto) VisitDType(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kFloat64:
      return std::forward<F>(f)(double{});
    case DType::kInt64:
      return std::forward<F>(f)(std::int64_t{});
    case DType::kUInt8:
      return std::forward<F>(f)(std::uint8_t{});
    case DType::kFloat32:
      break;
  }
  return std::forward<F>(f)(float{});
}

// {f(float{}), ...}: f's results for all types, indexed by DType.
template <typename F>
constexpr auto ByDType(F f) {
  return std::array{f(float{}), f(double{}), f(std::int64_t{}),
                    f(std::uint8_t{})};
}

}  // namespace d2l

#endif  // D2L_COMMON_TENSOR_DTYPE_H_
