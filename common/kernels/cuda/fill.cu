// What needs no operand.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// A number's size is all that a fill has to know.
template <typename Bits>
struct Constant {
  Bits bits;
  __device__ Bits operator()(std::int64_t) const { return bits; }
};

template <typename Bits, typename T>
void Fill(const CudaLaunch& launch, const FillArgs& args, T number) {
  static_assert(sizeof(Bits) == sizeof(T));
  Constant<Bits> constant;
  std::memcpy(&constant.bits, &number, sizeof(number));
  Elementwise(launch, constant, args.numel, static_cast<Bits*>(args.out),
              args.layout, Order::kAny);
}

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
  switch (args.dtype) {
    case DType::kFloat32:
      return Fill<std::uint32_t>(launch, args, args.value.To<float>());
    case DType::kFloat64:
      return Fill<std::uint64_t>(launch, args, args.value.To<double>());
    case DType::kInt64:
      return Fill<std::uint64_t>(launch, args, args.value.To<std::int64_t>());
    case DType::kUInt8:
      return Fill<std::uint8_t>(launch, args, args.value.To<std::uint8_t>());
  }
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
