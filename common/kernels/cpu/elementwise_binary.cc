// The blocks of two operands. A file of their own: they are most of the code.

#include <cstdint>

#include "common/kernels/cpu/elementwise_blocks.h"
#include "common/kernels/functors.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#define HWY_DISABLED_TARGETS HWY_SSSE3  // hardly a processor stops at it
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/elementwise_binary.cc"
#include "hwy/foreach_target.h"
//
#include "common/kernels/cpu/elementwise_blocks-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

// By Numbers, less kBothAreNumbers.
struct BlocksOfType {
  Block blocks[3];
};

template <typename F, typename T>
constexpr BlocksOfType Blocks() {
  using Out = decltype(F()(T{}, T{}));
  return {{Loop2<Out, F, Array<T>, Array<T>>,
           Loop2<Out, F, Number<T>, Array<T>>,
           Loop2<Out, F, Array<T>, Number<T>>}};
}

// Of a function that does not mind the order of its operands:
// kFirstIsNumber is left to kSecondIsNumber.
template <typename F, typename T>
constexpr BlocksOfType Commutative() {
  using Out = decltype(F()(T{}, T{}));
  return {{Loop2<Out, F, Array<T>, Array<T>>, nullptr,
           Loop2<Out, F, Array<T>, Number<T>>}};
}

struct BlocksOfOp {
  BlocksOfType of[4];  // by DType
};

template <typename F>
constexpr BlocksOfOp InOrder() {
  return {{Blocks<F, float>(), Blocks<F, double>(), Blocks<F, std::int64_t>(),
           Blocks<F, std::uint8_t>()}};
}

template <typename F>
constexpr BlocksOfOp AnyOrder() {
  return {{Commutative<F, float>(), Commutative<F, double>(),
           Commutative<F, std::int64_t>(), Commutative<F, std::uint8_t>()}};
}

struct BinaryTable {
  BlocksOfOp of[static_cast<int>(BinaryOp::kLessEqual) + 1];  // by BinaryOp
};

constexpr BinaryTable kBinaryTable = {{
    AnyOrder<Add>(),
    InOrder<Subtract>(),
    AnyOrder<Multiply>(),
    InOrder<Divide>(),
    InOrder<FloorDivide>(),
    InOrder<Power>(),
    AnyOrder<Maximum>(),
    AnyOrder<Minimum>(),
    AnyOrder<Equal>(),
    AnyOrder<NotEqual>(),
    InOrder<Less>(),
    InOrder<LessEqual>(),
}};

Block FindBinaryBlock(BinaryOp op, DType dtype, Numbers numbers) {
  return kBinaryTable.of[static_cast<int>(op)]
      .of[static_cast<int>(dtype)]
      .blocks[numbers];
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(FindBinaryBlock);

Block BinaryBlock(BinaryOp op, DType dtype, Numbers numbers) {
  return HWY_DYNAMIC_DISPATCH(FindBinaryBlock)(op, dtype, numbers);
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
