#include <cstdint>
#include <cstring>

#include "common/kernels/cuda/elementwise.cuh"
#include "common/kernels/cuda/launch.h"
#include "common/kernels/functors.h"
#include "common/tensor/dtype.h"
#include "common/tensor/scalar.h"

namespace d2l::kernels::cuda {
namespace {

// Select moves elements: their size is all that it has to know.
template <typename T>
Operand<BitsOf<T>> OperandOf(const Input& input) {
  Operand<BitsOf<T>> operand = {static_cast<const BitsOf<T>*>(input.data), 0};
  if (input.data == nullptr) {
    const T number = input.scalar.To<T>();
    std::memcpy(&operand.number, &number, sizeof(number));
  }
  return operand;
}

}  // namespace

void Launch(const CudaLaunch& launch, const WhereArgs& args) {
  const Operand<std::uint8_t> condition = {
      static_cast<const std::uint8_t*>(args.condition), 0};
  VisitDType(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    Elementwise(launch, Of<Select>(), args.numel,
                static_cast<BitsOf<T>*>(args.out), args.layout, Order::kAny,
                condition, OperandOf<T>(args.a), OperandOf<T>(args.b));
  });
}

}  // namespace d2l::kernels::cuda
