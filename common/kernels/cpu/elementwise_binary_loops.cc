// The loops of two operands, in a file of their own: they are most of the code.

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/functors.h"
#include "common/kernels/op_tables.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/elementwise_binary_loops.cc"
#include "hwy/foreach_target.h"
//
#include "common/kernels/cpu/elementwise_loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

// By Operands, without kScalarScalar. If the operation commutes, kVectorScalar
// replaces kScalarVector.
using LoopsOfDType = std::array<LoopFn, 3>;

template <BinaryOp kOp, typename F, typename T>
constexpr LoopsOfDType LoopsOf() {
  using Out = decltype(F()(T{}, T{}));
  static_assert(ResultDType(kOp, DTypeOf<T>::value) == DTypeOf<Out>::value);
  LoopsOfDType loops = {Loop2<Out, F, VectorOf<T>, VectorOf<T>>, nullptr,
                        Loop2<Out, F, VectorOf<T>, ScalarOf<T>>};
  if constexpr (!Commutes(kOp))
    loops[1] = Loop2<Out, F, ScalarOf<T>, VectorOf<T>>;
  return loops;
}

constexpr auto kBinaryLoops = TableOf<BinaryOp>([](auto row) {
  return ByDType([](auto zero) -> LoopsOfDType {
    using Row = decltype(row);
    using T = decltype(zero);
    using F = typename Row::Functor;
    if constexpr (std::is_same_v<F, Greater> ||
                  std::is_same_v<F, GreaterEqual> ||
                  !Contains(Row::kDTypes, DTypeOf<T>::value)) {
      return {};
    } else {
      return LoopsOf<Row::op, F, T>();
    }
  });
});

LoopFn FindBinaryLoop(BinaryOp op, DType dtype, Operands operands) {
  return kBinaryLoops[static_cast<std::size_t>(op)][static_cast<std::size_t>(
      dtype)][static_cast<std::size_t>(operands)];
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(FindBinaryLoop);

LoopFn BinaryLoop(BinaryOp op, DType dtype, Operands operands) {
  const LoopFn loop = HWY_DYNAMIC_DISPATCH(FindBinaryLoop)(op, dtype, operands);
  if (loop == nullptr) ThrowNoLoop(OpName(op), dtype);
  return loop;
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
