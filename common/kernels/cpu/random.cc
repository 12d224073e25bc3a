#include "common/kernels/cpu/random.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/vector_targets.h"
#include "common/kernels/enqueue.h"
#include "common/kernels/philox.h"
#include "common/tensor/dtype.h"

// Compiles what follows once for each kind of vector.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/kernels/cpu/random.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// One lane: philox.h itself.

template <typename Element, void (*kApply)(const PhiloxBlock&, Element*)>
struct Transform {
  using T = Element;
  static void Apply(const PhiloxBlock& block, T* out) { kApply(block, out); }
};
using UniformFloat = Transform<float, Uniforms>;
using UniformDouble = Transform<double, Uniforms>;
using NormalFloat = Transform<float, Normals>;
using NormalDouble = Transform<double, Normals>;
using Word32 = Transform<std::uint32_t, Words>;
using Word64 = Transform<std::uint64_t, Words>;

template <class Transform>
void Fill(typename Transform::T* out, std::int64_t begin, std::int64_t end,
          std::uint64_t seed, std::uint64_t offset) {
  using T = typename Transform::T;
  constexpr std::int64_t kPerBlock = kElementsPerBlock<T>;
  T buffer[kPerBlock];
  for (std::int64_t i = begin; i < end;) {
    Transform::Apply(Philox(seed, offset + i / kPerBlock), buffer);
    for (std::int64_t j = i % kPerBlock; j < kPerBlock && i < end; ++j) {
      out[i++] = buffer[j];
    }
  }
}

#else  // HWY_TARGET == HWY_SCALAR

namespace hn = hwy::HWY_NAMESPACE;

using Tag64 = hn::ScalableTag<std::uint64_t>;
using Tag32 = hn::Repartition<std::uint32_t, Tag64>;
using TagI32 = hn::Repartition<std::int32_t, Tag64>;
using TagF32 = hn::Repartition<float, Tag64>;
using TagF64 = hn::Repartition<double, Tag64>;
using V64 = hn::Vec<Tag64>;
using V32 = hn::Vec<Tag32>;
using VF32 = hn::Vec<TagF32>;
using VF64 = hn::Vec<TagF64>;

constexpr Tag64 k64;
constexpr Tag32 k32;
constexpr TagI32 kI32;
constexpr TagF32 kF32;
constexpr TagF64 kF64;

// The keys of all rounds: word 0 of round r at [2 * r], word 1 after it.
struct Keys {
  explicit Keys(std::uint64_t seed) {
    std::uint32_t key0 = static_cast<std::uint32_t>(seed);
    std::uint32_t key1 = static_cast<std::uint32_t>(seed >> 32);
    for (int r = 0; r < kPhiloxRounds; ++r) {
      key[2 * r] = key0;
      key[2 * r + 1] = key1;
      key0 += kPhiloxKeyStep0;
      key1 += kPhiloxKeyStep1;
    }
  }
  std::uint64_t key[2 * kPhiloxRounds];
};

// Computes four words of as many blocks as there are 64-bit lanes. A word is
// the low half of its lane; the high half is arbitrary, and multiplication does
// not read it: nothing needs to be masked or moved between rounds.
HWY_INLINE void PhiloxBlocks(V64 index, const Keys& keys, V64& x0, V64& x1,
                             V64& x2, V64& x3) {
  const V32 m0 = hn::Set(k32, kPhiloxMultiplier0);
  const V32 m1 = hn::Set(k32, kPhiloxMultiplier1);
  // The first two rounds use that parts of the counter are zero.
  V64 p0 = hn::MulEven(hn::BitCast(k32, index), m0);
  x0 = hn::Xor(hn::ShiftRight<32>(index), hn::Set(k64, keys.key[0]));
  x2 = hn::Xor(hn::ShiftRight<32>(p0), hn::Set(k64, keys.key[1]));
  x3 = p0;
  p0 = hn::MulEven(hn::BitCast(k32, x0), m0);
  V64 p1 = hn::MulEven(hn::BitCast(k32, x2), m1);
  x0 = hn::Xor(hn::ShiftRight<32>(p1), hn::Set(k64, keys.key[2]));
  x1 = p1;
  x2 = hn::Xor3(hn::ShiftRight<32>(p0), x3, hn::Set(k64, keys.key[3]));
  x3 = p0;
  HWY_UNROLL(8)
  for (int r = 2; r < kPhiloxRounds; ++r) {
    p0 = hn::MulEven(hn::BitCast(k32, x0), m0);
    p1 = hn::MulEven(hn::BitCast(k32, x2), m1);
    x0 = hn::Xor3(hn::ShiftRight<32>(p1), x1, hn::Set(k64, keys.key[2 * r]));
    x1 = p1;
    x2 =
        hn::Xor3(hn::ShiftRight<32>(p0), x3, hn::Set(k64, keys.key[2 * r + 1]));
    x3 = p0;
  }
}

// The low halves of `even` and `odd`, interleaved.
HWY_INLINE V32 Alternate(V64 even, V64 odd) {
  return hn::OddEven(hn::BitCast(k32, hn::ShiftLeft<32>(odd)),
                     hn::BitCast(k32, even));
}

// The transformations. Each takes the words of one block per 64-bit lane and
// makes two vectors; in `a` are the elements of the even lanes' blocks, in
// `b` those of the odd lanes'.

struct Word32 {
  using T = std::uint32_t;

  static HWY_INLINE void Apply(V64 x0, V64 x1, V64 x2, V64 x3, V32& a, V32& b) {
    const V64 low = hn::BitCast(k64, Alternate(x0, x1));
    const V64 high = hn::BitCast(k64, Alternate(x2, x3));
    a = hn::BitCast(k32, hn::InterleaveLower(k64, low, high));
    b = hn::BitCast(k32, hn::InterleaveUpper(k64, low, high));
  }
};

struct Word64 {
  using T = std::uint64_t;

  static HWY_INLINE void Apply(V64 x0, V64 x1, V64 x2, V64 x3, V64& a, V64& b) {
    // The first word is the upper half.
    const V64 first = hn::BitCast(k64, Alternate(x1, x0));
    const V64 second = hn::BitCast(k64, Alternate(x3, x2));
    a = hn::InterleaveLower(k64, first, second);
    b = hn::InterleaveUpper(k64, first, second);
  }
};

struct UniformFloat {
  using T = float;

  static HWY_INLINE VF32 FromWords(V32 words) {
    return hn::Mul(
        hn::ConvertTo(kF32, hn::BitCast(kI32, hn::ShiftRight<8>(words))),
        hn::Set(kF32, 0x1p-24f));
  }

  static HWY_INLINE void Apply(V64 x0, V64 x1, V64 x2, V64 x3, VF32& a,
                               VF32& b) {
    V32 words_a, words_b;
    Word32::Apply(x0, x1, x2, x3, words_a, words_b);
    a = FromWords(words_a);
    b = FromWords(words_b);
  }
};

struct UniformDouble {
  using T = double;

  // high * 2^-32 + (low >> 11) * 2^-53, in steps that are exact: the words
  // are put into the last places of 2^20 and of 1/2.
  static HWY_INLINE VF64 FromWords(V64 high, V64 low) {
    const V64 mask = hn::Set(k64, 0xFFFFFFFFu);
    const VF64 a = hn::BitCast(
        kF64, hn::Or(hn::And(high, mask), hn::Set(k64, 0x4130000000000000u)));
    const VF64 b =
        hn::BitCast(kF64, hn::Or(hn::ShiftRight<11>(hn::And(low, mask)),
                                 hn::Set(k64, 0x3FE0000000000000u)));
    return hn::Add(hn::Sub(a, hn::Set(kF64, 0x1p20)),
                   hn::Sub(b, hn::Set(kF64, 0.5)));
  }

  static HWY_INLINE void Apply(V64 x0, V64 x1, V64 x2, V64 x3, VF64& a,
                               VF64& b) {
    const VF64 first = FromWords(x0, x1);
    const VF64 second = FromWords(x2, x3);
    a = hn::InterleaveLower(kF64, first, second);
    b = hn::InterleaveUpper(kF64, first, second);
  }
};

// The code below is philox.h's NormalPair, step by step.

// c[i] + c[i + 1] x + ...
template <int i = 0, class V, typename T, int kCount>
HWY_INLINE V Polynomial(V x, const T (&c)[kCount]) {
  const V c_i = hn::Set(hn::DFromV<V>(), c[i]);
  if constexpr (i == kCount - 1) {
    return c_i;
  } else {
    return hn::MulAdd(Polynomial<i + 1>(x, c), x, c_i);
  }
}

// `sign` is the cosine's, which is turned where the first bit is 1.
template <class V>
HWY_INLINE void Normals(V minus_two_log, V t, V sign, V& a, V& b) {
  const hn::DFromV<V> d;
  using T = hn::TFromD<decltype(d)>;
  constexpr auto k = CoefficientsOf(T{});
  const V radius = hn::Sqrt(minus_two_log);
  const V z = hn::Mul(t, t);
  const V sin = hn::Mul(Polynomial(z, k.sin), t);
  const V cos =
      hn::Mul(Polynomial(z, k.cos), hn::NegMulAdd(t, t, hn::Set(d, T{1})));
  const V first = hn::Mul(radius, hn::Xor(cos, sign));
  const V second = hn::Mul(radius, sin);
  a = hn::InterleaveLower(d, first, second);
  b = hn::InterleaveUpper(d, first, second);
}

struct NormalFloat {
  using T = float;

  static HWY_INLINE VF32 MinusTwoLog(VF32 u) {
    constexpr FloatCoefficients k = CoefficientsOf(float{});
    const V32 bits = hn::BitCast(k32, u);
    const auto e = hn::ShiftRight<23>(
        hn::BitCast(kI32, hn::Sub(bits, hn::Set(k32, kSqrtHalfFloat))));
    const VF32 m = hn::BitCast(
        kF32, hn::Sub(bits, hn::BitCast(k32, hn::ShiftLeft<23>(e))));
    const VF32 f = hn::Sub(m, hn::Set(kF32, 1.0f));
    return hn::MulAdd(hn::ConvertTo(kF32, e), hn::Set(kF32, k.minus_two_log2),
                      hn::Mul(f, Polynomial(f, k.log)));
  }

  static HWY_INLINE void Apply(V64 x0, V64 x1, V64 x2, V64 x3, VF32& a,
                               VF32& b) {
    // Both pairs of a block, side by side.
    const V32 w0 = Alternate(x0, x2);
    const V32 w1 = Alternate(x1, x3);
    const VF32 u = hn::MulAdd(
        hn::ConvertTo(kF32, hn::BitCast(kI32, hn::ShiftRight<1>(w0))),
        hn::Set(kF32, 0x1p-31f), hn::Set(kF32, 0x1p-32f));
    const VF32 t = hn::Mul(hn::ConvertTo(kF32, hn::BitCast(kI32, w1)),
                           hn::Set(kF32, 0x1p-31f));
    Normals(MinusTwoLog(u), t, hn::BitCast(kF32, hn::ShiftLeft<31>(w0)), a, b);
  }
};

struct NormalDouble {
  using T = double;

  static HWY_INLINE VF64 MinusTwoLog(VF64 u) {
    constexpr DoubleCoefficients k = CoefficientsOf(double{});
    const V64 bits = hn::BitCast(k64, u);
    // e + 64, which is positive: few targets shift signed 64-bit lanes, or
    // convert them.
    const V64 e =
        hn::ShiftRight<52>(hn::Add(hn::Sub(bits, hn::Set(k64, kSqrtHalfDouble)),
                                   hn::Set(k64, std::uint64_t{64} << 52)));
    const VF64 m = hn::BitCast(
        kF64, hn::Sub(hn::Add(bits, hn::Set(k64, std::uint64_t{64} << 52)),
                      hn::ShiftLeft<52>(e)));
    const VF64 exponent =
        hn::Sub(hn::BitCast(kF64, hn::Or(e, hn::Set(k64, 0x4330000000000000u))),
                hn::Set(kF64, 0x1p52 + 64));
    const VF64 f = hn::Sub(m, hn::Set(kF64, 1.0));
    const VF64 s = hn::Div(f, hn::Add(hn::Set(kF64, 2.0), f));
    const VF64 z = hn::Mul(s, s);
    const VF64 p = hn::MulAdd(Polynomial(z, k.log), hn::Mul(s, z),
                              hn::Mul(s, hn::Set(kF64, -4.0)));
    return hn::MulAdd(
        exponent, hn::Set(kF64, k.minus_two_log2_high),
        hn::MulAdd(exponent, hn::Set(kF64, k.minus_two_log2_low), p));
  }

  static HWY_INLINE void Apply(V64 x0, V64 x1, V64 x2, V64 x3, VF64& a,
                               VF64& b) {
    const VF64 u =
        hn::Add(UniformDouble::FromWords(x0, x1), hn::Set(kF64, 0x1p-54));
    const VF64 half = UniformDouble::FromWords(x2, x3);
    const VF64 t = hn::Sub(hn::Add(half, half), hn::Set(kF64, 1.0));
    Normals(MinusTwoLog(u), t, hn::BitCast(kF64, hn::ShiftLeft<63>(x1)), a, b);
  }
};

template <class Transform>
void Fill(typename Transform::T* HWY_RESTRICT out, std::int64_t begin,
          std::int64_t end, std::uint64_t seed, std::uint64_t offset) {
  using T = typename Transform::T;
  const hn::Repartition<T, Tag64> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kPerBlock = kElementsPerBlock<T>;
  const std::int64_t blocks = static_cast<std::int64_t>(hn::Lanes(k64));
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t chunk = 2 * lanes;  // = blocks * kPerBlock

  const Keys keys(seed);
  // Even lanes hold the first half of the blocks and odd lanes the second:
  // interleaving, which works on 128 bits at a time, then gives the order of
  // the elements.
  const V64 lane = hn::Iota(k64, 0);
  const V64 order =
      hn::Add(hn::ShiftRight<1>(lane),
              hn::IfThenElseZero(
                  hn::Eq(hn::And(lane, hn::Set(k64, 1)), hn::Set(k64, 1)),
                  hn::Set(k64, static_cast<std::uint64_t>(blocks / 2))));

  std::int64_t i = begin;
  while (i < end) {
    const std::int64_t skip = i % kPerBlock;
    V64 index = hn::Add(
        order,
        hn::Set(k64, offset + static_cast<std::uint64_t>(i / kPerBlock)));
    V64 x0, x1, x2, x3;
    V a, b;
    if (skip == 0 && end - i >= chunk) {
      const V64 step = hn::Set(k64, static_cast<std::uint64_t>(blocks));
      // Stores normally. Non-temporal stores fill 40 MB 5 % faster, but reading
      // the numbers then takes 15 % longer.
      for (; end - i >= chunk; i += chunk) {
        PhiloxBlocks(index, keys, x0, x1, x2, x3);
        Transform::Apply(x0, x1, x2, x3, a, b);
        hn::StoreU(a, d, out + i);
        hn::StoreU(b, d, out + i + lanes);
        index = hn::Add(index, step);
      }
    } else {
      // A part of a chunk: at the start up to the next block, or at the end.
      HWY_ALIGN T buffer[2 * hn::MaxLanes(d)];
      PhiloxBlocks(index, keys, x0, x1, x2, x3);
      Transform::Apply(x0, x1, x2, x3, a, b);
      hn::Store(a, d, buffer);
      hn::Store(b, d, buffer + lanes);
      const std::int64_t piece = skip != 0 ? kPerBlock - skip : chunk;
      const std::int64_t count = piece < end - i ? piece : end - i;
      std::memcpy(out + i, buffer + skip,
                  static_cast<std::size_t>(count) * sizeof(T));
      i += count;
    }
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

// Makes a batch of words, which stays in the cache, then numbers of it.
template <class Words, typename T>
void FillIntegers(const RandomArgs& args, std::int64_t begin,
                  std::int64_t end) {
  using Word = typename Words::T;
  constexpr std::int64_t kPerBlock = kElementsPerBlock<Word>;
  constexpr std::int64_t kBatch = 1024;  // whole blocks
  T* const out = static_cast<T*>(args.out);
  const std::uint64_t low = static_cast<std::uint64_t>(args.low);
  const std::uint64_t range = args.range;
  Word words[kBatch];
  while (begin < end) {
    const std::int64_t block = begin / kPerBlock;
    const std::int64_t first = begin % kPerBlock;
    const std::int64_t last = std::min(first + end - begin, kBatch);
    Fill<Words>(words, first, last, args.state.seed,
                args.state.offset + static_cast<std::uint64_t>(block));
    for (std::int64_t i = first; i < last; ++i) {
      out[begin++] = static_cast<T>(
          static_cast<std::int64_t>(low + Scaled(words[i], range)));
    }
  }
}

template <class Transform>
void FillReals(const RandomArgs& args, std::int64_t begin, std::int64_t end) {
  Fill<Transform>(static_cast<typename Transform::T*>(args.out), begin, end,
                  args.state.seed, args.state.offset);
}

using FillFunction = void (*)(const RandomArgs& args, std::int64_t begin,
                              std::int64_t end);

FillFunction ChooseFill(RandomOp op, DType dtype, std::uint64_t range) {
  const bool is_double = dtype == DType::kFloat64;
  switch (op) {
    case RandomOp::kUniform:
      return is_double ? FillReals<UniformDouble> : FillReals<UniformFloat>;
    case RandomOp::kNormal:
      return is_double ? FillReals<NormalDouble> : FillReals<NormalFloat>;
    case RandomOp::kInteger:
      break;
  }
  return VisitDType(dtype, [range](auto zero) -> FillFunction {
    using T = decltype(zero);
    return range <= std::uint64_t{1} << 32 ? FillIntegers<Word32, T>
                                           : FillIntegers<Word64, T>;
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace d2l::kernels::cpu {

HWY_EXPORT(ChooseFill);

void FillRandom(const RandomArgs& args, std::int64_t begin, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(ChooseFill)
  (args.op, args.dtype, args.range)(args, begin, end);
}

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const RandomArgs& args) {
  if (!OpTakes(args.op, args.dtype)) ThrowNoLoop(OpName(args.op), args.dtype);
  return stream.Enqueue(label, [args] {
    // The work that is worth a thread: whole blocks, so that no block is
    // computed twice.
    constexpr std::int64_t kGrain = 16 << 10;
    ParallelFor(args.numel, kGrain,
                [&args](std::int64_t begin, std::int64_t end) {
                  FillRandom(args, begin, end);
                });
  });
}

}  // namespace d2l::kernels::cpu

#endif  // HWY_ONCE
