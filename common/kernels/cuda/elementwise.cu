// Functions of one operand, including the powers that are functions of one
// operand, because x * x is not pow(); and functions of two.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/functors.h"
#include "common/kernels/op_tables.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// ---- Of one operand.

using UnaryFunction = void (*)(const CudaLaunch&, const UnaryArgs&);

template <typename F, typename T>
void RunUnary(const CudaLaunch& launch, const UnaryArgs& args) {
  Elementwise(launch, IgnoreIndex<F>(), args.numel, static_cast<T*>(args.out),
              args.layout, Order::kAny,
              ArrayOrNumber<T>{static_cast<const T*>(args.in), T{}});
}

using FunctionTable = std::array<UnaryFunction, 4>;  // by DType

UnaryFunction Find(const FunctionTable& table, DType dtype) {
  return table[static_cast<std::size_t>(dtype)];
}

template <typename F, DTypes kDTypes = DTypes::kAny>
constexpr FunctionTable FunctionsOf() {
  return ByDType([](auto zero) -> UnaryFunction {
    using T = decltype(zero);
    if constexpr (Contains(kDTypes, DTypeOf<T>::value)) {
      return RunUnary<F, T>;
    } else {
      return nullptr;
    }
  });
}

constexpr auto kUnaryTable = TableOf<UnaryOp>([](auto row) {
  using Row = decltype(row);
  return FunctionsOf<typename Row::Functor, Row::kDTypes>();
});

constexpr FunctionTable kCube = FunctionsOf<Cube>();
constexpr FunctionTable kHalf =
    FunctionsOf<PowerOfHalf, DTypes::kFloatingPoint>();
constexpr FunctionTable kReciprocal =
    FunctionsOf<Reciprocal, DTypes::kFloatingPoint>();

// Computes args.a to the power of `exponent`, if that is 0, 1, 2, 3, or, for
// floating-point numbers, 0.5 or -1. Returns whether it was one of these.
bool RunPower(const CudaLaunch& launch, double exponent,
              const BinaryArgs& args) {
  const UnaryArgs unary = {UnaryOp::kSquare, args.dtype,  args.numel,
                           args.out,         args.a.data, args.layout};
  const auto run = [&](const FunctionTable& table) {
    const UnaryFunction function = Find(table, args.dtype);
    if (function != nullptr) function(launch, unary);
    return function != nullptr;
  };
  if (exponent == 0) {
    Launch(launch, FillArgs{args.dtype, args.numel, args.out, 1, args.layout});
    return true;
  }
  if (exponent == 1) {
    Launch(launch, CopyArgs{args.dtype, args.dtype, args.numel, args.out,
                            args.a.data, args.layout});
    return true;
  }
  if (exponent == 2) {
    Launch(launch, unary);
    return true;
  }
  if (exponent == 3) return run(kCube);
  if (exponent == 0.5) return run(kHalf);
  return exponent == -1 && run(kReciprocal);
}

// ---- Of two.

// CUDA's powf() is off by up to 4 units in the last place, the C library's by
// hardly more than half of one, because it computes in double.
struct DevicePower {
  __device__ float operator()(float a, float b) const {
    return PowerOfFloat()(a, b);
  }
  __device__ double operator()(double a, double b) const {
    return Power()(a, b);
  }
};

// The divisors, or exponents, that are errors for integers.
template <typename F, typename T>
D2L_HOST_DEVICE bool IsBad(T b) {
  return std::is_same_v<F, FloorDivide> ? b == 0 : b < T{0};
}
template <typename F>
constexpr DeviceError kErrorOf =
    std::is_same_v<F, FloorDivide> ? DeviceError::kDivisionByZero
                                   : DeviceError::kNegativeExponent;

// For integers: reports a bad divisor or exponent. The result is then 0, which
// is never read.
template <typename F>
struct Checked {
  ErrorReporter errors;

  template <typename T>
  __device__ T operator()(std::int64_t number, T a, T b) const {
    if (IsBad<F>(b)) {
      ReportError(errors, kErrorOf<F>, number, static_cast<std::int64_t>(b));
    }
    return F()(a, b);
  }
};

__global__ void ReportKernel(ErrorReporter errors, DeviceError error,
                             std::int64_t b) {
  ReportError(errors, error, 0, b);
}

using BinaryFunction = void (*)(const CudaLaunch&, const BinaryArgs&);

template <typename T>
ArrayOrNumber<T> ArrayOrNumberOf(const Input& input) {
  return {static_cast<const T*>(input.data),
          input.data == nullptr ? input.scalar.To<T>() : T{}};
}

template <typename F, typename T>
void RunBinary(const CudaLaunch& launch, const BinaryArgs& args) {
  using Out = decltype(F()(T{}, T{}));
  Elementwise(launch, IgnoreIndex<F>(), args.numel, static_cast<Out*>(args.out),
              args.layout, Order::kAny, ArrayOrNumberOf<T>(args.a),
              ArrayOrNumberOf<T>(args.b));
}

// The elements keep their order, because the message numbers them.
template <typename F, typename T>
void RunChecked(const CudaLaunch& launch, const BinaryArgs& args) {
  if (args.b.data == nullptr && IsBad<F>(args.b.scalar.To<T>())) {
    // Every element is wrong, so the first is reported.
    if (args.numel > 0) {
      StartKernel(ReportKernel, 1, 1, launch.stream, launch.errors, kErrorOf<F>,
                  args.b.scalar.To<std::int64_t>());
    }
    return;
  }
  Elementwise(launch, Checked<F>{launch.errors}, args.numel,
              static_cast<T*>(args.out), args.layout, Order::kOfLayout,
              ArrayOrNumberOf<T>(args.a), ArrayOrNumberOf<T>(args.b));
}

// The functors that WithoutGreater() replaces are not needed.
template <typename F, typename T>
constexpr BinaryFunction FunctionOf() {
  if constexpr (std::is_same_v<F, Greater> || std::is_same_v<F, GreaterEqual>) {
    return nullptr;
  } else if constexpr (std::is_same_v<F, Power> ||
                       std::is_same_v<F, FloorDivide>) {
    if constexpr (std::is_integral_v<T>)
      return RunChecked<F, T>;
    else if constexpr (std::is_same_v<F, Power>)
      return RunBinary<DevicePower, T>;
    else
      return RunBinary<F, T>;
  } else {
    return RunBinary<F, T>;
  }
}

constexpr auto kBinaryTable = TableOf<BinaryOp>([](auto row) {
  return ByDType([](auto zero) -> BinaryFunction {
    using Row = decltype(row);
    using T = decltype(zero);
    if constexpr (Contains(Row::kDTypes, DTypeOf<T>::value)) {
      return FunctionOf<typename Row::Functor, T>();
    } else {
      return nullptr;
    }
  });
});

void RunPowerOfFloat(const CudaLaunch& launch, const BinaryArgs& args) {
  Elementwise(launch, IgnoreIndex<PowerOfFloat>(), args.numel,
              static_cast<float*>(args.out), args.layout, Order::kAny,
              ArrayOrNumberOf<float>(args.a), ArrayOrNumberOf<double>(args.b));
}

}  // namespace

void Launch(const CudaLaunch& launch, const UnaryArgs& args) {
  const UnaryFunction function =
      Find(kUnaryTable[static_cast<std::size_t>(args.op)], args.dtype);
  if (function == nullptr) ThrowNoLoop(OpName(args.op), args.dtype);
  function(launch, args);
}

void Launch(const CudaLaunch& launch, const BinaryArgs& args) {
  if (args.op == BinaryOp::kPow && args.b.data == nullptr) {
    if (RunPower(launch, args.b.scalar.To<double>(), args)) return;
    if (args.dtype == DType::kFloat32) return RunPowerOfFloat(launch, args);
  }
  BinaryArgs ordered = args;
  StridedLayout layout;
  ordered.op = WithoutGreater(args.op);
  if (ordered.op != args.op) {
    std::swap(ordered.a, ordered.b);
    if (args.layout != nullptr) {
      layout = *args.layout;
      std::swap(layout.in[0], layout.in[1]);
      ordered.layout = &layout;
    }
  }
  const BinaryFunction function =
      kBinaryTable[static_cast<std::size_t>(ordered.op)]
                  [static_cast<std::size_t>(args.dtype)];
  if (function == nullptr) ThrowNoLoop(OpName(args.op), args.dtype);
  function(launch, ordered);
}

}  // namespace d2l::kernels::cuda
