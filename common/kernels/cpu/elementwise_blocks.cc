#include "common/kernels/cpu/elementwise_blocks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/kernels/functors.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#define HWY_DISABLED_TARGETS HWY_SSSE3  // hardly a processor stops at it
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/elementwise_blocks.cc"
#include "hwy/foreach_target.h"
//
#include "common/kernels/cpu/elementwise_blocks-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

constexpr int kDTypes = 4;

// What only moves elements knows their size alone.

struct Same {
  template <typename T>
  T operator()(T a) const {
    return a;
  }
};

template <typename T>
constexpr Block kFill = Loop1<T, Same, Number<T>>;

constexpr Block kFillTable[kDTypes] = {
    kFill<std::uint32_t>, kFill<std::uint64_t>, kFill<std::uint64_t>,
    kFill<std::uint8_t>};

Block FindFillBlock(DType dtype) { return kFillTable[static_cast<int>(dtype)]; }

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

constexpr Block kArangeTable[kDTypes] = {
    Arange<float>, Arange<double>, Arange<std::int64_t>, Arange<std::uint8_t>};

Block FindArangeBlock(DType dtype) {
  return kArangeTable[static_cast<int>(dtype)];
}

template <int kSize>
void Move(void* out, const void* a, const void*, const void*, std::int64_t n) {
  if (out != a) std::memcpy(out, a, static_cast<std::size_t>(n) * kSize);
}

template <typename Out, typename In>
constexpr Block kConvert = Loop1<Out, ConvertTo<Out>, Array<In>>;

// [out][in]
constexpr Block kCopyTable[kDTypes][kDTypes] = {
    {Move<4>, kConvert<float, double>, kConvert<float, std::int64_t>,
     kConvert<float, std::uint8_t>},
    {kConvert<double, float>, Move<8>, kConvert<double, std::int64_t>,
     kConvert<double, std::uint8_t>},
    {kConvert<std::int64_t, float>, kConvert<std::int64_t, double>, Move<8>,
     kConvert<std::int64_t, std::uint8_t>},
    {kConvert<std::uint8_t, float>, kConvert<std::uint8_t, double>,
     kConvert<std::uint8_t, std::int64_t>, Move<1>},
};

Block FindCopyBlock(DType out_dtype, DType in_dtype) {
  return kCopyTable[static_cast<int>(out_dtype)][static_cast<int>(in_dtype)];
}

template <typename F, typename T>
constexpr Block kOf = Loop1<T, F, Array<T>>;

struct BlocksOfOp {
  Block of[kDTypes];
};

template <typename F>
constexpr BlocksOfOp AnyType() {
  return {{kOf<F, float>, kOf<F, double>, kOf<F, std::int64_t>,
           kOf<F, std::uint8_t>}};
}

template <typename F>
constexpr BlocksOfOp FloatingPoint() {
  return {{kOf<F, float>, kOf<F, double>, nullptr, nullptr}};
}

constexpr BlocksOfOp kUnaryTable[] = {
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

Block FindUnaryBlock(UnaryOp op, DType dtype) {
  return kUnaryTable[static_cast<int>(op)].of[static_cast<int>(dtype)];
}

constexpr BlocksOfOp kCubeTable = AnyType<Cube>();
constexpr BlocksOfOp kHalfTable = FloatingPoint<PowerOfHalf>();
constexpr BlocksOfOp kReciprocalTable = FloatingPoint<Reciprocal>();

Block FindPowerBlock(double exponent, DType dtype) {
  const int type = static_cast<int>(dtype);
  if (exponent == 1) return FindCopyBlock(dtype, dtype);
  if (exponent == 2) return FindUnaryBlock(UnaryOp::kSquare, dtype);
  if (exponent == 3) return kCubeTable.of[type];
  if (exponent == 0.5) return kHalfTable.of[type];
  if (exponent == -1) return kReciprocalTable.of[type];
  return nullptr;
}

// By Numbers.
struct BlocksOfSize {
  Block of[4];
};

template <typename T>
constexpr BlocksOfSize Selects() {
  using C = Array<std::uint8_t>;
  return {{Loop3<T, Select, C, Array<T>, Array<T>>,
           Loop3<T, Select, C, Number<T>, Array<T>>,
           Loop3<T, Select, C, Array<T>, Number<T>>,
           Loop3<T, Select, C, Number<T>, Number<T>>}};
}

constexpr BlocksOfSize kWhereTable[kDTypes] = {
    Selects<std::uint32_t>(), Selects<std::uint64_t>(),
    Selects<std::uint64_t>(), Selects<std::uint8_t>()};

Block FindWhereBlock(DType dtype, Numbers numbers) {
  return kWhereTable[static_cast<int>(dtype)].of[numbers];
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(FindFillBlock);
HWY_EXPORT(FindArangeBlock);
HWY_EXPORT(FindCopyBlock);
HWY_EXPORT(FindUnaryBlock);
HWY_EXPORT(FindPowerBlock);
HWY_EXPORT(FindWhereBlock);

Block FillBlock(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindFillBlock)(dtype);
}
Block ArangeBlock(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindArangeBlock)(dtype);
}
Block CopyBlock(DType out_dtype, DType in_dtype) {
  return HWY_DYNAMIC_DISPATCH(FindCopyBlock)(out_dtype, in_dtype);
}
Block UnaryBlock(UnaryOp op, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindUnaryBlock)(op, dtype);
}
Block PowerBlock(double exponent, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(FindPowerBlock)(exponent, dtype);
}
Block WhereBlock(DType dtype, Numbers numbers) {
  return HWY_DYNAMIC_DISPATCH(FindWhereBlock)(dtype, numbers);
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
