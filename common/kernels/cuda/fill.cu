// What needs no operand.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/functors.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// A number's size is all that a fill has to know.
template <typename Bits>
struct Constant {
  Bits bits;
  __device__ Bits operator()(std::int64_t) const { return bits; }
};

// As on the CPU: computed in double, or in integers that wrap around.
template <typename T>
struct Sequence {
  using Computed =
      std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  Computed start;
  Computed step;

  __device__ T operator()(std::int64_t i) const {
    return static_cast<T>(start + static_cast<Computed>(i) * step);
  }
};

}  // namespace

void Launch(const CudaLaunch& launch, const FillArgs& args) {
  VisitDType(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T number = args.value.To<T>();
    Constant<BitsOf<T>> constant;
    std::memcpy(&constant.bits, &number, sizeof(number));
    Elementwise(launch, constant, args.numel, static_cast<BitsOf<T>*>(args.out),
                args.layout, Order::kAny);
  });
}

void Launch(const CudaLaunch& launch, const ArangeArgs& args) {
  VisitDType(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    Sequence<T> sequence;
    if constexpr (std::is_floating_point_v<T>) {
      sequence = {args.start.To<double>(), args.step.To<double>()};
    } else {
      sequence = {static_cast<std::uint64_t>(args.start.To<std::int64_t>()),
                  static_cast<std::uint64_t>(args.step.To<std::int64_t>())};
    }
    Elementwise(launch, sequence, args.numel, static_cast<T*>(args.out),
                nullptr, Order::kOfLayout);
  });
}

}  // namespace d2l::kernels::cuda
