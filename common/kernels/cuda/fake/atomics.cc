#include "common/kernels/cuda/fake/atomics.h"

#include <algorithm>
#include <type_traits>

#include "common/kernels/cuda/fake/grid.h"

namespace d2l::kernels::cuda::internal {
namespace {

template <typename T>
T Changed(Change change, T before, T value, T compare) {
  if constexpr (std::is_integral_v<T>) {
    // Sums of signed numbers wrap, as on a GPU.
    using Bits = std::make_unsigned_t<T>;
    const Bits a = static_cast<Bits>(before), b = static_cast<Bits>(value);
    switch (change) {
      case Change::kAdd:
        return static_cast<T>(a + b);
      case Change::kSub:
        return static_cast<T>(a - b);
      case Change::kAnd:
        return static_cast<T>(a & b);
      case Change::kOr:
        return static_cast<T>(a | b);
      case Change::kXor:
        return static_cast<T>(a ^ b);
      case Change::kIncrement:
        return a >= b ? T{0} : static_cast<T>(a + 1);
      case Change::kDecrement:
        return a == 0 || a > b ? value : static_cast<T>(a - 1);
      case Change::kCompareAndSwap:
        return before == compare ? value : before;
      case Change::kMin:
        return std::min(before, value);
      case Change::kMax:
        return std::max(before, value);
      case Change::kExchange:
        return value;
    }
  }
  return change == Change::kAdd ? before + value : value;
}

}  // namespace

template <typename T>
__attribute__((noinline)) T Atomic(Change change, T* to, T value, T compare) {
  if (GridObserver* const observer = ObserverOfThread()) {
    observer->Access(to, sizeof(T), /*writes=*/true, /*atomic=*/true,
                     __builtin_return_address(0));
  }
  const T before = *to;
  *to = Changed(change, before, value, compare);
  return before;
}

// NOLINTBEGIN(google-runtime-int): as CUDA's
template int Atomic(Change, int*, int, int);
template unsigned Atomic(Change, unsigned*, unsigned, unsigned);
template long long Atomic(Change, long long*, long long, long long);
template unsigned long long Atomic(Change, unsigned long long*,
                                   unsigned long long, unsigned long long);
template float Atomic(Change, float*, float, float);
template double Atomic(Change, double*, double, double);
// NOLINTEND(google-runtime-int)

}  // namespace d2l::kernels::cuda::internal
