// Functions of two operands.

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/elementwise.h"
#include "common/kernels/cuda/power.h"
#include "common/kernels/cuda/start_kernel.cuh"
#include "common/kernels/functors.h"
#include "common/tensor/dtype.h"

namespace d2l::kernels::cuda {
namespace {

// powf() of CUDA is off by up to 4 units in the last place, that of the C
// library by hardly more than half of one, because it computes in double.
struct DevicePower {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, float>) {
      return static_cast<float>(
          std::pow(static_cast<double>(a), static_cast<double>(b)));
    } else {
      return Power()(a, b);
    }
  }
};

// Which divisors, or exponents, integers must not have.
template <typename F, typename T>
D2L_HOST_DEVICE bool IsBad(T b) {
  return std::is_same_v<F, FloorDivide> ? b == 0 : b < T{0};
}
template <typename F>
constexpr DeviceError kErrorOf =
    std::is_same_v<F, FloorDivide> ? DeviceError::kDivisionByZero
                                   : DeviceError::kNegativeExponent;

// Of integers: reports a bad divisor or exponent. The result is then 0, which
// nobody gets to see.
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

using BinaryFunction = void (*)(const Launch&, const BinaryArgs&);

template <typename T>
Operand<T> OperandOf(const Input& input) {
  return {static_cast<const T*>(input.data),
          input.data == nullptr ? input.scalar.To<T>() : T{}};
}

template <typename F, typename T>
void Run(const Launch& launch, const BinaryArgs& args) {
  using Out = decltype(F()(T{}, T{}));
  Elementwise(launch, Of<F>(), args.numel, static_cast<Out*>(args.out),
              args.layout, Order::kAny, OperandOf<T>(args.a),
              OperandOf<T>(args.b));
}

// The elements keep their order, because the message numbers them.
template <typename F, typename T>
void RunChecked(const Launch& launch, const BinaryArgs& args) {
  if (args.b.data == nullptr && IsBad<F>(args.b.scalar.To<T>())) {
    // Every element is wrong: the first is told.
    if (args.numel > 0) {
      StartKernel(ReportKernel, 1, 1, launch.stream, launch.errors, kErrorOf<F>,
                  args.b.scalar.To<std::int64_t>());
    }
    return;
  }
  Elementwise(launch, Checked<F>{launch.errors}, args.numel,
              static_cast<T*>(args.out), args.layout, Order::kOfLayout,
              OperandOf<T>(args.a), OperandOf<T>(args.b));
}

struct FunctionsOfOp {
  BinaryFunction of[4];  // by DType
};

template <typename F>
constexpr FunctionsOfOp AnyType() {
  return {{Run<F, float>, Run<F, double>, Run<F, std::int64_t>,
           Run<F, std::uint8_t>}};
}

// By BinaryOp, less the comparisons.
constexpr FunctionsOfOp kArithmetic[] = {
    AnyType<Add>(),
    AnyType<Subtract>(),
    AnyType<Multiply>(),
    AnyType<Divide>(),
    {{Run<FloorDivide, float>, Run<FloorDivide, double>,
      RunChecked<FloorDivide, std::int64_t>,
      RunChecked<FloorDivide, std::uint8_t>}},
    {{Run<DevicePower, float>, Run<DevicePower, double>,
      RunChecked<Power, std::int64_t>, RunChecked<Power, std::uint8_t>}},
    AnyType<Maximum>(),
    AnyType<Minimum>(),
};

// From BinaryOp::kEqual on. Greater and GreaterEqual are the other two with
// their operands exchanged.
constexpr FunctionsOfOp kComparisons[] = {
    AnyType<Equal>(),
    AnyType<NotEqual>(),
    AnyType<Less>(),
    AnyType<LessEqual>(),
};

BinaryFunction FunctionOf(BinaryOp op, DType dtype) {
  const int type = static_cast<int>(dtype);
  return IsComparison(op) ? kComparisons[static_cast<int>(op) -
                                         static_cast<int>(BinaryOp::kEqual)]
                                .of[type]
                          : kArithmetic[static_cast<int>(op)].of[type];
}

}  // namespace

void LaunchBinary(const Launch& launch, const BinaryArgs& args) {
  if (args.op == BinaryOp::kPow && args.b.data == nullptr &&
      LaunchPower(launch, args.b.scalar.To<double>(), args)) {
    return;
  }
  if (args.op != BinaryOp::kGreater && args.op != BinaryOp::kGreaterEqual) {
    FunctionOf(args.op, args.dtype)(launch, args);
    return;
  }
  BinaryArgs less = args;
  less.op =
      args.op == BinaryOp::kGreater ? BinaryOp::kLess : BinaryOp::kLessEqual;
  less.a = args.b;
  less.b = args.a;
  StridedLayout layout;
  if (args.layout != nullptr) {
    layout = *args.layout;
    std::swap(layout.in[0], layout.in[1]);
    less.layout = &layout;
  }
  FunctionOf(less.op, args.dtype)(launch, less);
}

}  // namespace d2l::kernels::cuda
