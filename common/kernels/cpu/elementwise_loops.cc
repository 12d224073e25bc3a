#include "common/kernels/cpu/elementwise_loops.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/functors.h"
#include "common/kernels/op_tables.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/elementwise_loops.cc"
#include "hwy/foreach_target.h"
//
#include "common/kernels/cpu/elementwise_loops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

// Loops by dtype.
using LoopTable = std::array<LoopFn, 4>;

LoopFn Find(const LoopTable& table, DType dtype) {
  return table[static_cast<std::size_t>(dtype)];
}

constexpr LoopTable kFillLoops = ByDType([](auto zero) -> LoopFn {
  using T = BitsOf<decltype(zero)>;
  return Loop1<T, Same, ScalarOf<T>>;
});

LoopFn FindFillLoop(DType dtype) { return Find(kFillLoops, dtype); }

template <typename T>
void Arange(void* out, const void* a, const void* b, const void* c,
            std::int64_t n) {
  T* const to = static_cast<T*>(out);
  const std::int64_t first = *static_cast<const std::int64_t*>(c);
  if constexpr (std::is_floating_point_v<T>) {
    const double start = *static_cast<const double*>(a);
    const double step = *static_cast<const double*>(b);
    // Vectors convert 32-bit integers only, unless they are AVX-512's.
    constexpr std::int64_t kPart = 1 << 20;
    for (std::int64_t begin = 0; begin < n; begin += kPart) {
      const double base = static_cast<double>(first + begin);
      const int count = static_cast<int>(std::min(kPart, n - begin));
      T* const part = to + begin;
      for (int i = 0; i < count; ++i) {
        part[i] = static_cast<T>(start + (base + i) * step);
      }
    }
  } else {
    const std::uint64_t start = *static_cast<const std::uint64_t*>(a);
    const std::uint64_t step = *static_cast<const std::uint64_t*>(b);
    const std::uint64_t base = start + static_cast<std::uint64_t>(first) * step;
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = static_cast<T>(base + static_cast<std::uint64_t>(i) * step);
    }
  }
}

constexpr LoopTable kArangeLoops =
    ByDType([](auto zero) -> LoopFn { return Arange<decltype(zero)>; });

LoopFn FindArangeLoop(DType dtype) { return Find(kArangeLoops, dtype); }

template <int kSize>
void Move(void* out, const void* a, const void*, const void*, std::int64_t n) {
  if (out != a) std::memcpy(out, a, static_cast<std::size_t>(n) * kSize);
}

// [out][in]
constexpr auto kCopyLoops = ByDType([](auto out) {
  return ByDType([](auto in) -> LoopFn {
    using Out = decltype(out);
    using In = decltype(in);
    if constexpr (std::is_same_v<Out, In>) {
      return Move<sizeof(Out)>;
    } else {
      return Loop1<Out, ConvertTo<Out>, VectorOf<In>>;
    }
  });
});

LoopFn FindCopyLoop(DType out_dtype, DType in_dtype) {
  return Find(kCopyLoops[static_cast<std::size_t>(out_dtype)], in_dtype);
}

template <typename F, DTypes kDTypes = DTypes::kAny>
constexpr LoopTable LoopsOf() {
  return ByDType([](auto zero) -> LoopFn {
    using T = decltype(zero);
    if constexpr (Contains(kDTypes, DTypeOf<T>::value)) {
      return Loop1<T, F, VectorOf<T>>;
    } else {
      return nullptr;
    }
  });
}

constexpr auto kUnaryLoops = TableOf<UnaryOp>([](auto row) {
  using Row = decltype(row);
  return LoopsOf<typename Row::Functor, Row::kDTypes>();
});

LoopFn FindUnaryLoop(UnaryOp op, DType dtype) {
  return Find(kUnaryLoops[static_cast<std::size_t>(op)], dtype);
}

constexpr LoopTable kCubeLoops = LoopsOf<Cube>();
constexpr LoopTable kHalfLoops = LoopsOf<PowerOfHalf, DTypes::kFloatingPoint>();
constexpr LoopTable kReciprocalLoops =
    LoopsOf<Reciprocal, DTypes::kFloatingPoint>();

LoopFn FindPowerLoop(double exponent, DType dtype) {
  if (exponent == 1) return FindCopyLoop(dtype, dtype);
  if (exponent == 2) return FindUnaryLoop(UnaryOp::kSquare, dtype);
  if (exponent == 3) return Find(kCubeLoops, dtype);
  if (exponent == 0.5) return Find(kHalfLoops, dtype);
  if (exponent == -1) return Find(kReciprocalLoops, dtype);
  return nullptr;
}

LoopFn FindPowerOfFloatLoop() {
  return Loop2<float, PowerOfFloat, VectorOf<float>, ScalarOf<double>>;
}

// By Operands, then by dtype.
template <template <typename> class B, template <typename> class C>
constexpr LoopTable kWhereLoopsOf = ByDType([](auto zero) -> LoopFn {
  using T = BitsOf<decltype(zero)>;
  return Loop3<T, Select, VectorOf<std::uint8_t>, B<T>, C<T>>;
});
constexpr LoopTable kWhereLoops[] = {
    kWhereLoopsOf<VectorOf, VectorOf>, kWhereLoopsOf<ScalarOf, VectorOf>,
    kWhereLoopsOf<VectorOf, ScalarOf>, kWhereLoopsOf<ScalarOf, ScalarOf>};

LoopFn FindWhereLoop(DType dtype, Operands operands) {
  return Find(kWhereLoops[static_cast<int>(operands)], dtype);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(FindFillLoop);
HWY_EXPORT(FindArangeLoop);
HWY_EXPORT(FindCopyLoop);
HWY_EXPORT(FindUnaryLoop);
HWY_EXPORT(FindPowerLoop);
HWY_EXPORT(FindPowerOfFloatLoop);
HWY_EXPORT(FindWhereLoop);

LoopFn FillLoop(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindFillLoop)(dtype);
}
LoopFn ArangeLoop(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindArangeLoop)(dtype);
}
LoopFn CopyLoop(DType out_dtype, DType in_dtype) {
  return HWY_DYNAMIC_DISPATCH(FindCopyLoop)(out_dtype, in_dtype);
}
LoopFn UnaryLoop(UnaryOp op, DType dtype) {
  const LoopFn loop = HWY_DYNAMIC_DISPATCH(FindUnaryLoop)(op, dtype);
  if (loop == nullptr) ThrowNoLoop(OpName(op), dtype);
  return loop;
}
LoopFn PowerLoop(double exponent, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindPowerLoop)(exponent, dtype);
}
LoopFn PowerOfFloatLoop() {
  return HWY_DYNAMIC_DISPATCH(FindPowerOfFloatLoop)();
}
LoopFn WhereLoop(DType dtype, Operands operands) {
  return HWY_DYNAMIC_DISPATCH(FindWhereLoop)(dtype, operands);
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
