// Functions of one operand, and the powers that are one: x * x is not pow().

#include <cstdint>
#include <type_traits>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/elementwise.h"
#include "common/kernels/cuda/power.h"
#include "common/kernels/functors.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

using UnaryFunction = void (*)(const Launch&, const UnaryArgs&);

template <typename F, typename T>
void Run(const Launch& launch, const UnaryArgs& args) {
  Elementwise(launch, Of<F>(), args.numel, static_cast<T*>(args.out),
              args.layout, Order::kAny,
              Operand<T>{static_cast<const T*>(args.in), T{}});
}

struct FunctionsOfOp {
  UnaryFunction of[4];  // by DType
};

template <typename F>
constexpr FunctionsOfOp AnyType() {
  return {{Run<F, float>, Run<F, double>, Run<F, std::int64_t>,
           Run<F, std::uint8_t>}};
}

template <typename F>
constexpr FunctionsOfOp FloatingPoint() {
  return {{Run<F, float>, Run<F, double>, nullptr, nullptr}};
}

// By UnaryOp.
constexpr FunctionsOfOp kTable[] = {
    AnyType<Negative>(),
    AnyType<Abs>(),
    AnyType<Relu>(),
    AnyType<Square>(),
    FloatingPoint<Exponential>(),
    FloatingPoint<Logarithm>(),
    FloatingPoint<SquareRoot>(),
    FloatingPoint<HyperbolicTangent>(),
    FloatingPoint<Logistic>(),
};

constexpr FunctionsOfOp kCube = AnyType<Cube>();
constexpr FunctionsOfOp kHalf = FloatingPoint<PowerOfHalf>();
constexpr FunctionsOfOp kReciprocal = FloatingPoint<Reciprocal>();

}  // namespace

void LaunchUnary(const Launch& launch, const UnaryArgs& args) {
  kTable[static_cast<int>(args.op)].of[static_cast<int>(args.dtype)](launch,
                                                                     args);
}

bool LaunchPower(const Launch& launch, double exponent,
                 const BinaryArgs& args) {
  const int type = static_cast<int>(args.dtype);
  if (exponent == 0) {
    LaunchFill(launch, {args.dtype, args.numel, args.out, 1, args.layout});
    return true;
  }
  if (exponent == 1) {
    LaunchCopy(launch, {args.dtype, args.dtype, args.numel, args.out,
                        args.a.data, args.layout});
    return true;
  }
  UnaryFunction function = nullptr;
  if (exponent == 2) {
    function = kTable[static_cast<int>(UnaryOp::kSquare)].of[type];
  } else if (exponent == 3) {
    function = kCube.of[type];
  } else if (exponent == 0.5) {
    function = kHalf.of[type];
  } else if (exponent == -1) {
    function = kReciprocal.of[type];
  }
  if (function == nullptr) return false;
  function(launch, {UnaryOp::kSquare, args.dtype, args.numel, args.out,
                    args.a.data, args.layout});
  return true;
}

}  // namespace d2l::kernels::cuda
