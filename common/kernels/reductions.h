// The state of an output while elements are reduced to it, written once for
// every back end.
//
//   using Op = Sum<float>;
//   Op::State state = Op::Nothing();
//   Op::Merge(state, Op::State{1.5});  // of elements that come later
//   float mean = Op::Finish(state, /*divisor=*/n);  // and of a sum 1
//
// Each operation has
//   Part    the result of a short run of elements, which `Add` extends
//   State   the result for an output so far
//   Merge   adds another part, or another state, to a state
// A part of a floating-point sum has the elements' type, a state is double, so
// that there are few roundings to float. Integers wrap around, so they are
// unsigned; a run of bytes fits 32 bits.
//
// Merge is associative, except for the roundings of sums: each back end fixes
// their order. Pure functions.

#ifndef D2L_COMMON_KERNELS_REDUCTIONS_H_
#define D2L_COMMON_KERNELS_REDUCTIONS_H_

#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/kernels/host_device.h"

namespace d2l::kernels {

template <typename T>
D2L_HOST_DEVICE inline bool IsNan(T x) {
  return x != x;
}

// Whether a comes before b, and the value that comes after all others.
struct Larger {
  template <typename T>
  D2L_HOST_DEVICE static bool Before(T a, T b) {
    return a > b;
  }
  template <typename T>
  D2L_HOST_DEVICE static constexpr T Last() {
    if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::min();
    return -std::numeric_limits<T>::infinity();
  }
};
struct Smaller {
  template <typename T>
  D2L_HOST_DEVICE static bool Before(T a, T b) {
    return a < b;
  }
  template <typename T>
  D2L_HOST_DEVICE static constexpr T Last() {
    if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::max();
    return std::numeric_limits<T>::infinity();
  }
};

// The first of two numbers in the order, or NaN if one is.
template <class Order, typename T>
D2L_HOST_DEVICE inline T First(T a, T b) {
  return Order::Before(b, a) || IsNan(b) ? b : a;
}

template <typename Element>
struct Sum {
  using T = Element;
  using Part = std::conditional_t<
      std::is_floating_point_v<T>, T,
      std::conditional_t<sizeof(T) == 1, std::uint32_t, std::uint64_t>>;
  using State =
      std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  using Out = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;

  D2L_HOST_DEVICE static Part NoElement() { return 0; }
  D2L_HOST_DEVICE static State Nothing() { return 0; }
  D2L_HOST_DEVICE static void Add(Part& part, T x, std::int64_t) {
    part += static_cast<Part>(x);
  }
  template <typename S>
  D2L_HOST_DEVICE static void Merge(S& state, const S& later) {
    state += later;
  }
  // The divisor of a mean is the number of elements.
  D2L_HOST_DEVICE static Out Finish(State state, std::int64_t divisor) {
    return static_cast<Out>(divisor == 1 ? state
                                         : state / static_cast<State>(divisor));
  }
};

// The first in the order, or NaN if one is.
template <typename Element, class Order>
struct Extreme {
  using T = Element;
  using Part = T;
  using State = T;
  using Out = T;

  D2L_HOST_DEVICE static T NoElement() { return Order::template Last<T>(); }
  D2L_HOST_DEVICE static T Nothing() { return NoElement(); }
  D2L_HOST_DEVICE static void Add(T& part, T x, std::int64_t) {
    Merge(part, x);
  }
  D2L_HOST_DEVICE static void Merge(T& state, T later) {
    state = First<Order>(state, later);
  }
  D2L_HOST_DEVICE static T Finish(T state, std::int64_t) { return state; }
};

template <typename T>
using Max = Extreme<T, Larger>;
template <typename T>
using Min = Extreme<T, Smaller>;

// The index of the largest element; of equals the first, and NaN is larger than
// all. States may be merged in any order.
template <typename Element>
struct ArgMax {
  using T = Element;
  struct State {
    T value;
    std::int64_t index;  // -1: no element yet
  };
  using Part = State;
  using Out = std::int64_t;

  D2L_HOST_DEVICE static State NoElement() { return {T{}, -1}; }
  D2L_HOST_DEVICE static State Nothing() { return NoElement(); }
  D2L_HOST_DEVICE static void Add(Part& part, T x, std::int64_t index) {
    Merge(part, {x, index});
  }
  D2L_HOST_DEVICE static void Merge(State& state, const State& other) {
    if (other.index < 0) return;
    const bool equal = other.value == state.value ||
                       (IsNan(other.value) && IsNan(state.value));
    if (state.index < 0 || Beats(other.value, state.value) ||
        (equal && other.index < state.index)) {
      state = other;
    }
  }
  D2L_HOST_DEVICE static Out Finish(const State& state, std::int64_t) {
    return state.index;
  }

  // Whether y is larger than x.
  D2L_HOST_DEVICE static bool Beats(T y, T x) {
    return y > x || (IsNan(y) && !IsNan(x));
  }
};

}  // namespace d2l::kernels

#endif  // D2L_COMMON_KERNELS_REDUCTIONS_H_
