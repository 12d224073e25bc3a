// The element-wise functions, each written once for every back end.
//
//   Add()(1.f, 2.f);  // 3.f
//
// A functor takes and returns the element type. Integers wrap around on
// overflow, as they do in PyTorch.

#ifndef D2L_COMMON_KERNELS_FUNCTORS_H_
#define D2L_COMMON_KERNELS_FUNCTORS_H_

#include <type_traits>

#include "common/kernels/host_device.h"

namespace d2l::kernels {

namespace internal {

// The type in which to compute on T so that overflow is defined.
template <typename T, bool = std::is_integral_v<T>>
struct Wrapping {
  using type = T;
};
template <typename T>
struct Wrapping<T, true> {
  using type = std::make_unsigned_t<T>;
};
template <typename T>
using WrappingT = typename Wrapping<T>::type;

}  // namespace internal

struct Add {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a, T b) const {
    using W = internal::WrappingT<T>;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};

struct Subtract {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a, T b) const {
    using W = internal::WrappingT<T>;
    return static_cast<T>(static_cast<W>(a) - static_cast<W>(b));
  }
};

struct Multiply {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a, T b) const {
    using W = internal::WrappingT<T>;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};

struct Negative {
  template <typename T>
  D2L_HOST_DEVICE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(internal::WrappingT<T>{0} -
                            static_cast<internal::WrappingT<T>>(a));
    } else {
      return -a;
    }
  }
};

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_FUNCTORS_H_
