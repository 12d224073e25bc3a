// Functions of one operand, and the powers that are one: x * x is not pow().

#include <array>
#include <cstddef>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/functors.h"
#include "common/kernels/op_tables.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

using UnaryFunction = void (*)(const CudaLaunch&, const UnaryArgs&);

template <typename F, typename T>
void Run(const CudaLaunch& launch, const UnaryArgs& args) {
  Elementwise(launch, Of<F>(), args.numel, static_cast<T*>(args.out),
              args.layout, Order::kAny,
              Operand<T>{static_cast<const T*>(args.in), T{}});
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
      return Run<F, T>;
    } else {
      return nullptr;
    }
  });
}

constexpr auto kTable = TableOf<UnaryOp>([](auto row) {
  using Row = decltype(row);
  return FunctionsOf<typename Row::Functor, Row::kDTypes>();
});

constexpr FunctionTable kCube = FunctionsOf<Cube>();
constexpr FunctionTable kHalf =
    FunctionsOf<PowerOfHalf, DTypes::kFloatingPoint>();
constexpr FunctionTable kReciprocal =
    FunctionsOf<Reciprocal, DTypes::kFloatingPoint>();

}  // namespace

void Launch(const CudaLaunch& launch, const UnaryArgs& args) {
  const UnaryFunction function =
      Find(kTable[static_cast<std::size_t>(args.op)], args.dtype);
  if (function == nullptr) ThrowNoLoop(OpName(args.op), args.dtype);
  function(launch, args);
}

bool LaunchPower(const CudaLaunch& launch, double exponent,
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

}  // namespace d2l::kernels::cuda
