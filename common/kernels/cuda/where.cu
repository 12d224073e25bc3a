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
template <typename Bits, typename T>
Operand<Bits> OperandOf(const Input& input) {
  static_assert(sizeof(Bits) == sizeof(T));
  Operand<Bits> operand = {static_cast<const Bits*>(input.data), Bits{}};
  if (input.data == nullptr) {
    const T number = input.scalar.To<T>();
    std::memcpy(&operand.number, &number, sizeof(number));
  }
  return operand;
}

template <typename Bits, typename T>
void Where(const CudaLaunch& launch, const WhereArgs& args) {
  const Operand<std::uint8_t> condition = {
      static_cast<const std::uint8_t*>(args.condition), 0};
  Elementwise(launch, Of<Select>(), args.numel, static_cast<Bits*>(args.out),
              args.layout, Order::kAny, condition, OperandOf<Bits, T>(args.a),
              OperandOf<Bits, T>(args.b));
}

}  // namespace

void Launch(const CudaLaunch& launch, const WhereArgs& args) {
  switch (args.dtype) {
    case DType::kFloat32:
      return Where<std::uint32_t, float>(launch, args);
    case DType::kFloat64:
      return Where<std::uint64_t, double>(launch, args);
    case DType::kInt64:
      return Where<std::uint64_t, std::int64_t>(launch, args);
    case DType::kUInt8:
      return Where<std::uint8_t, std::uint8_t>(launch, args);
  }
}

}  // namespace d2l::kernels::cuda
