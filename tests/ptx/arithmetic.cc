// Arithmetic, comparisons and bits: operations on the values of one lane.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "tests/ptx/kernel.h"
#include "tests/ptx/lanes.h"
#include "tests/ptx/report.h"
#include "tests/ptx/rounding.h"

namespace d2l::ptx {
namespace {

// An unsigned type for arithmetic that wraps around: at least as wide as int,
// which narrower types are promoted to.
template <typename T>
using Unsigned =
    std::conditional_t<(sizeof(T) < 8), std::uint32_t, std::uint64_t>;
template <typename T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;

// ---- Operations. They take three operands and ignore what they do not need.

#define D2L_PTX_OPERATION(name, expression)                 \
  struct name {                                             \
    template <typename T>                                   \
    static T Of([[maybe_unused]] T a, [[maybe_unused]] T b, \
                [[maybe_unused]] T c) {                     \
      [[maybe_unused]] const auto wrap = [](T x) {          \
        if constexpr (kIsFloat<T>) {                        \
          return x;                                         \
        } else {                                            \
          return static_cast<Unsigned<T>>(x);               \
        }                                                   \
      };                                                    \
      return static_cast<T>(expression);                    \
    }                                                       \
  }

D2L_PTX_OPERATION(Add, wrap(a) + wrap(b));
D2L_PTX_OPERATION(Sub, wrap(a) - wrap(b));
D2L_PTX_OPERATION(Mul, wrap(a) * wrap(b));
D2L_PTX_OPERATION(MadLo, wrap(a) * wrap(b) + wrap(c));
D2L_PTX_OPERATION(Negate, wrap(0) - wrap(a));
D2L_PTX_OPERATION(And, a& b);
D2L_PTX_OPERATION(Or, a | b);
D2L_PTX_OPERATION(Xor, a ^ b);
D2L_PTX_OPERATION(Not, ~a);
D2L_PTX_OPERATION(Move, a);
D2L_PTX_OPERATION(Reciprocal, 1 / a);
D2L_PTX_OPERATION(SquareRoot, std::sqrt(a));
D2L_PTX_OPERATION(Fma, std::fma(a, b, c));
D2L_PTX_OPERATION(NegateFloat, -a);
D2L_PTX_OPERATION(AbsFloat, std::fabs(a));
D2L_PTX_OPERATION(CopySign, std::copysign(b, a));
#undef D2L_PTX_OPERATION

struct MulHi {
  template <typename T>
  static T Of(T a, T b, T) {
    using Wide =
        std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>(static_cast<Wide>(a) * b >> (8 * sizeof(T)));
  }
};
struct MadHi {
  template <typename T>
  static T Of(T a, T b, T c) {
    return Add::Of(MulHi::Of(a, b, c), c, c);
  }
};
// PTX does not say what a division by zero gives; on GPUs it is all ones.
struct Div {
  template <typename T>
  static T Of(T a, T b, T c) {
    if constexpr (kIsFloat<T>) {
      return a / b;
    } else {
      if (b == 0) return static_cast<T>(-1);
      // The lowest number by -1 would overflow.
      if (std::is_signed_v<T> && b == T(-1)) return Negate::Of(a, b, c);
      return static_cast<T>(a / b);
    }
  }
};
struct Rem {
  template <typename T>
  static T Of(T a, T b, T c) {
    if (b == 0) return a;
    return Sub::Of(a, Mul::Of(Div::Of(a, b, c), b, c), c);
  }
};
// NaN only if both are; -0 is less than 0.
struct Min {
  template <typename T>
  static T Of(T a, T b, T) {
    if constexpr (kIsFloat<T>) {
      if (a != a) return b;
      if (b != b) return a;
      if (a == b) return std::signbit(a) ? a : b;
    }
    return a < b ? a : b;
  }
};
struct Max {
  template <typename T>
  static T Of(T a, T b, T) {
    if constexpr (kIsFloat<T>) {
      if (a != a) return b;
      if (b != b) return a;
      if (a == b) return std::signbit(a) ? b : a;
    }
    return a > b ? a : b;
  }
};
struct AbsInteger {
  template <typename T>
  static T Of(T a, T b, T c) {
    return a < 0 ? Negate::Of(a, b, c) : a;
  }
};
struct ReverseBits {
  template <typename T>
  static T Of(T a, T, T) {
    T reversed = 0;
    for (std::size_t i = 0; i < 8 * sizeof(T); ++i) {
      reversed = static_cast<T>(reversed << 1 | (a >> i & 1));
    }
    return reversed;
  }
};
// The funnel shifts, of b:a by c.
template <bool kLeft, bool kClamp>
struct Funnel {
  template <typename T>
  static T Of(T a, T b, T c) {
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    const std::uint32_t by = kClamp ? std::min<T>(c, 32) : c & 31;
    return static_cast<T>(kLeft ? both << by >> 32 : both >> by);
  }
};
// Each nibble of c selects a byte of b:a, or, with its high bit, its sign.
struct Permute {
  template <typename T>
  static T Of(T a, T b, T c) {
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    T made = 0;
    for (int i = 0; i < 4; ++i) {
      const unsigned select = c >> (4 * i) & 15;
      unsigned byte = both >> (8 * (select & 7)) & 255;
      if (select >= 8) byte = byte >= 128 ? 255 : 0;
      made |= static_cast<T>(byte) << (8 * i);
    }
    return made;
  }
};

// ---- Handlers.

template <typename T, typename Operation>
D2L_PTX_OPAQUE T Opaque(T a, T b, T c) {
  return Operation::Of(a, b, c);
}

template <typename T, typename Operation>
void Arithmetic(Warp& warp, const Instruction& i) {
  T* const out = Register<T>(warp, i.out[0]);
  const T* const a = Register<T>(warp, i.in[0]);
  const T* const b = Register<T>(warp, i.in[1]);
  const T* const c = Register<T>(warp, i.in[2]);
  if constexpr (!kIsFloat<T>) {
    WriteLanes(warp, out,
               [=](int l) { return Operation::Of(a[l], b[l], c[l]); });
  } else if (i.rounding == Rounding::kNearest && !i.flush && !i.saturate) {
    WriteLanes(warp, out, [=](int l) {
      return Canonical(Operation::Of(a[l], b[l], c[l]));
    });
  } else {
    const ScopedRounding rounding(i.rounding);
    const auto in = [&](T x) { return i.flush ? Flush(x) : x; };
    ForLanes(warp.active, [&](int l) {
      T made = Canonical(Opaque<T, Operation>(in(a[l]), in(b[l]), in(c[l])));
      made = in(made);
      out[l] = i.saturate ? Saturate(made) : made;
    });
  }
}

// Changes signs, or nothing: NaN keeps its bits.
template <typename T, typename Operation>
void Copying(Warp& warp, const Instruction& i) {
  T* const out = Register<T>(warp, i.out[0]);
  const T* const a = Register<T>(warp, i.in[0]);
  const T* const b = Register<T>(warp, i.in[1]);
  WriteLanes(warp, out, [&](int l) {
    const T made = Operation::Of(a[l], b[l], b[l]);
    return i.flush ? Flush(made) : made;
  });
}

template <typename T, typename Wide, bool kAdd>
void WideProduct(Warp& warp, const Instruction& i) {
  Wide* const out = Register<Wide>(warp, i.out[0]);
  const T* const a = Register<T>(warp, i.in[0]);
  const T* const b = Register<T>(warp, i.in[1]);
  const Wide* const c = Register<Wide>(warp, i.in[2]);
  WriteLanes(warp, out, [=](int l) {
    const Wide product = static_cast<Wide>(static_cast<Wide>(a[l]) * b[l]);
    return kAdd ? Add::Of(product, c[l], c[l]) : product;
  });
}

// A shift by more than the width gives zeros, or signs.
template <typename T, bool kLeft>
void Shift(Warp& warp, const Instruction& i) {
  T* const out = Register<T>(warp, i.out[0]);
  const T* const a = Register<T>(warp, i.in[0]);
  const auto* const by = Register<std::uint32_t>(warp, i.in[1]);
  WriteLanes(warp, out, [=](int l) -> T {
    constexpr std::uint32_t kBits = 8 * sizeof(T);
    if (by[l] >= kBits) return !kLeft && a[l] < T{0} ? T(-1) : T{0};
    return static_cast<T>(kLeft ? static_cast<T>(Unsigned<T>(a[l]) << by[l])
                                : static_cast<T>(a[l] >> by[l]));
  });
}

template <typename T>
void PopulationCount(Warp& warp, const Instruction& i) {
  const T* const a = Register<T>(warp, i.in[0]);
  WriteLanes(warp, Register<std::uint32_t>(warp, i.out[0]), [=](int l) {
    return static_cast<std::uint32_t>(__builtin_popcountll(a[l]));
  });
}
template <typename T>
void CountLeadingZeros(Warp& warp, const Instruction& i) {
  const T* const a = Register<T>(warp, i.in[0]);
  WriteLanes(warp, Register<std::uint32_t>(warp, i.out[0]), [=](int l) {
    constexpr int kBits = 8 * sizeof(T);
    return static_cast<std::uint32_t>(
        a[l] == 0 ? kBits : __builtin_clzll(a[l]) - (64 - kBits));
  });
}

// The bits from in[1], in[2] of them, extended by a sign if T is signed.
template <typename T>
void ExtractBits(Warp& warp, const Instruction& i) {
  const T* const a = Register<T>(warp, i.in[0]);
  const auto* const first = Register<std::uint32_t>(warp, i.in[1]);
  const auto* const count = Register<std::uint32_t>(warp, i.in[2]);
  WriteLanes(warp, Register<T>(warp, i.out[0]), [=](int l) -> T {
    constexpr unsigned kBits = 8 * sizeof(T);
    const unsigned begin = first[l] & 255;
    const unsigned bits = std::min(count[l] & 255, kBits);
    if (bits == 0) return 0;
    const unsigned top = std::min(begin + bits, kBits);  // beyond: signs
    const bool sign = std::is_signed_v<T> && (a[l] >> (top - 1) & 1) != 0;
    T made = sign ? static_cast<T>(-1) : T{0};
    for (unsigned k = 0; k < bits && begin + k < kBits; ++k) {
      const T bit = static_cast<T>(T{1} << k);
      made = static_cast<T>((made & ~bit) | ((a[l] >> (begin + k) & 1) << k));
    }
    return made;
  });
}
// in[0]'s lowest in[3] bits go into in[1], from in[2] on.
template <typename T>
void InsertBits(Warp& warp, const Instruction& i) {
  const T* const a = Register<T>(warp, i.in[0]);
  const T* const b = Register<T>(warp, i.in[1]);
  const auto* const first = Register<std::uint32_t>(warp, i.in[2]);
  const auto* const count = Register<std::uint32_t>(warp, i.in[3]);
  WriteLanes(warp, Register<T>(warp, i.out[0]), [=](int l) {
    constexpr unsigned kBits = 8 * sizeof(T);
    const unsigned begin = first[l] & 255;
    const unsigned bits = count[l] & 255;
    if (begin >= kBits) return b[l];
    const T ones = bits >= kBits ? T(~T{0}) : T((T{1} << bits) - 1);
    return static_cast<T>((b[l] & ~(ones << begin)) | (a[l] & ones) << begin);
  });
}

// ---- Approximations. They are rounded correctly, unless D2L_PTX_PERTURB moves
// them by up to the error that the PTX manual states.

struct Approximation {
  double (*function)(double);
  double relative_error;
  double absolute_error;
};
double Inverse(double x) { return 1 / x; }
double InverseRoot(double x) { return 1 / std::sqrt(x); }
constexpr Approximation kReciprocal = {Inverse, 0x1p-23, 0};
constexpr Approximation kSquareRoot = {std::sqrt, 0x1p-23, 0};
constexpr Approximation kInverseRoot = {InverseRoot, 0x1.11p-23, 0};
constexpr Approximation kExp2 = {std::exp2, 0x1.6ap-23, 0};
constexpr Approximation kLog2 = {std::log2, 0, 0x1p-22};
constexpr Approximation kSin = {std::sin, 0, 0x1.6ap-21};
constexpr Approximation kCos = {std::cos, 0, 0x1.6ap-21};
constexpr Approximation kTanh = {std::tanh, 0x1p-11, 0};

// From -1 to 1; depends on the argument.
double Random(double x) {
  auto bits = __builtin_bit_cast(std::uint64_t, x);
  bits = (bits ^ static_cast<std::uint64_t>(TheSettings().perturb)) *
         0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93;
  return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
}
double Moved(double exact, double by, const Approximation& how) {
  if (TheSettings().perturb == 0 || !std::isfinite(exact) || exact == 0) {
    return exact;
  }
  return exact +
         by * (std::fabs(exact) * how.relative_error + how.absolute_error);
}

template <const Approximation& kHow>
void Approximate(Warp& warp, const Instruction& i) {
  float* const out = Register<float>(warp, i.out[0]);
  const float* const a = Register<float>(warp, i.in[0]);
  ForLanes(warp.active, [&](int l) {
    const double x = i.flush ? Flush(a[l]) : a[l];
    const auto y = static_cast<float>(Moved(kHow.function(x), Random(x), kHow));
    out[l] = Canonical(i.flush ? Flush(y) : y);
  });
}
// The upper 32 bits of the result, from the upper 32 bits of the operand.
template <const Approximation& kHow>
void ApproximateDouble(Warp& warp, const Instruction& i) {
  double* const out = Register<double>(warp, i.out[0]);
  const double* const a = Register<double>(warp, i.in[0]);
  const auto upper = [](double x) {
    if (std::fabs(x) < std::numeric_limits<double>::min()) {
      x = std::copysign(0.0, x);
    }
    return __builtin_bit_cast(
        double, __builtin_bit_cast(std::uint64_t, x) & 0xffffffff00000000);
  };
  ForLanes(warp.active, [&](int l) {
    const double x = upper(a[l]);
    const Approximation how = {kHow.function, 0x1p-20, 0};
    out[l] = upper(Moved(how.function(x), Random(x), how));
  });
}
// div.approx and div.full, of at most two units in the last place.
void ApproximateQuotient(Warp& warp, const Instruction& i) {
  float* const out = Register<float>(warp, i.out[0]);
  const float* const a = Register<float>(warp, i.in[0]);
  const float* const b = Register<float>(warp, i.in[1]);
  ForLanes(warp.active, [&](int l) {
    const double x = i.flush ? Flush(a[l]) : a[l];
    const double y = i.flush ? Flush(b[l]) : b[l];
    const auto made =
        static_cast<float>(Moved(x / y, Random(x + y), {nullptr, 0x1p-22, 0}));
    out[l] = Canonical(i.flush ? Flush(made) : made);
  });
}

// ---- Predicates.

template <typename Operation>
void OfPredicates(Warp& warp, const Instruction& i) {
  const std::uint32_t a = Predicate(warp, i.in[0]);
  const std::uint32_t b = Predicate(warp, i.in[1]);
  SetPredicate(warp, i.out[0], Operation::Of(a, b, b));
}

#define D2L_PTX_COMPARISON(name, ordered, expression)            \
  struct name {                                                  \
    template <typename T>                                        \
    static bool Of([[maybe_unused]] T a, [[maybe_unused]] T b) { \
      if constexpr (kIsFloat<T>) {                               \
        if (a != a || b != b) return !(ordered);                 \
      }                                                          \
      return expression;                                         \
    }                                                            \
  }
D2L_PTX_COMPARISON(Equal, true, a == b);
D2L_PTX_COMPARISON(NotEqual, true, a != b);
D2L_PTX_COMPARISON(Less, true, a < b);
D2L_PTX_COMPARISON(LessOrEqual, true, a <= b);
D2L_PTX_COMPARISON(Greater, true, a > b);
D2L_PTX_COMPARISON(GreaterOrEqual, true, a >= b);
D2L_PTX_COMPARISON(EqualOrNan, false, a == b);
D2L_PTX_COMPARISON(NotEqualOrNan, false, a != b);
D2L_PTX_COMPARISON(LessOrNan, false, a < b);
D2L_PTX_COMPARISON(LessOrEqualOrNan, false, a <= b);
D2L_PTX_COMPARISON(GreaterOrNan, false, a > b);
D2L_PTX_COMPARISON(GreaterOrEqualOrNan, false, a >= b);
D2L_PTX_COMPARISON(Ordered, true, true);
D2L_PTX_COMPARISON(Unordered, false, false);
#undef D2L_PTX_COMPARISON

template <typename T, typename Comparison>
void Compare(Warp& warp, const Instruction& i) {
  const T* const a = Register<T>(warp, i.in[0]);
  const T* const b = Register<T>(warp, i.in[1]);
  std::uint32_t bits = 0;
  for (int l = 0; l < kLanes; ++l) {
    T x = a[l], y = b[l];
    if constexpr (kIsFloat<T>) {
      if (i.flush) {
        x = Flush(x);
        y = Flush(y);
      }
    }
    bits |= std::uint32_t{Comparison::Of(x, y)} << l;
  }
  SetPredicate(warp, i.out[0], bits);
}

template <typename T>
void Select(Warp& warp, const Instruction& i) {
  const T* const a = Register<T>(warp, i.in[0]);
  const T* const b = Register<T>(warp, i.in[1]);
  const std::uint32_t which = Predicate(warp, i.in[2]);
  WriteLanes(warp, Register<T>(warp, i.out[0]),
             [=](int l) { return (which >> l & 1) != 0 ? a[l] : b[l]; });
}

// ---- The table.

using Table = std::map<std::pair<std::string, Type>, Handler>;

template <typename T>
void AddComparisons(Table& table, Type type) {
  table[{"setp.eq", type}] = Compare<T, Equal>;
  table[{"setp.ne", type}] = Compare<T, NotEqual>;
  table[{"setp.lt", type}] = table[{"setp.lo", type}] = Compare<T, Less>;
  table[{"setp.le", type}] = table[{"setp.ls", type}] = Compare<T, LessOrEqual>;
  table[{"setp.gt", type}] = table[{"setp.hi", type}] = Compare<T, Greater>;
  table[{"setp.ge", type}] = table[{"setp.hs", type}] =
      Compare<T, GreaterOrEqual>;
  table[{"selp", type}] = Select<T>;
}

template <typename T>
void AddIntegers(Table& table, Type type) {
  AddComparisons<T>(table, type);
  table[{"add", type}] = Arithmetic<T, Add>;
  table[{"sub", type}] = Arithmetic<T, Sub>;
  table[{"mul", type}] = Arithmetic<T, Mul>;
  table[{"mul.hi", type}] = Arithmetic<T, MulHi>;
  table[{"mad", type}] = Arithmetic<T, MadLo>;
  table[{"mad.hi", type}] = Arithmetic<T, MadHi>;
  table[{"div", type}] = Arithmetic<T, Div>;
  table[{"rem", type}] = Arithmetic<T, Rem>;
  table[{"min", type}] = Arithmetic<T, Min>;
  table[{"max", type}] = Arithmetic<T, Max>;
  table[{"and", type}] = Arithmetic<T, And>;
  table[{"or", type}] = Arithmetic<T, Or>;
  table[{"xor", type}] = Arithmetic<T, Xor>;
  table[{"not", type}] = Arithmetic<T, Not>;
  table[{"neg", type}] = Arithmetic<T, Negate>;
  table[{"abs", type}] = Arithmetic<T, AbsInteger>;
  table[{"mov", type}] = Arithmetic<T, Move>;
  table[{"shl", type}] = Shift<T, true>;
  table[{"shr", type}] = Shift<T, false>;
  if constexpr (sizeof(T) >= 4) {
    table[{"bfe", type}] = ExtractBits<T>;
  }
  if constexpr (sizeof(T) >= 4 && !std::is_signed_v<T>) {
    table[{"bfi", type}] = InsertBits<T>;
    table[{"brev", type}] = Arithmetic<T, ReverseBits>;
    table[{"popc", type}] = PopulationCount<T>;
    table[{"clz", type}] = CountLeadingZeros<T>;
  }
}

template <typename T>
void AddFloats(Table& table, Type type) {
  AddComparisons<T>(table, type);
  table[{"setp.equ", type}] = Compare<T, EqualOrNan>;
  table[{"setp.neu", type}] = Compare<T, NotEqualOrNan>;
  table[{"setp.ltu", type}] = Compare<T, LessOrNan>;
  table[{"setp.leu", type}] = Compare<T, LessOrEqualOrNan>;
  table[{"setp.gtu", type}] = Compare<T, GreaterOrNan>;
  table[{"setp.geu", type}] = Compare<T, GreaterOrEqualOrNan>;
  table[{"setp.num", type}] = Compare<T, Ordered>;
  table[{"setp.nan", type}] = Compare<T, Unordered>;
  table[{"add", type}] = Arithmetic<T, Add>;
  table[{"sub", type}] = Arithmetic<T, Sub>;
  table[{"mul", type}] = Arithmetic<T, Mul>;
  table[{"fma", type}] = Arithmetic<T, Fma>;
  table[{"div", type}] = Arithmetic<T, Div>;
  table[{"rcp", type}] = Arithmetic<T, Reciprocal>;
  table[{"sqrt", type}] = Arithmetic<T, SquareRoot>;
  table[{"min", type}] = Arithmetic<T, Min>;
  table[{"max", type}] = Arithmetic<T, Max>;
  table[{"neg", type}] = Copying<T, NegateFloat>;
  table[{"abs", type}] = Copying<T, AbsFloat>;
  table[{"copysign", type}] = Copying<T, CopySign>;
  table[{"mov", type}] = Copying<T, Move>;
}

Table MakeTable() {
  Table table;
  for (const Type type : {Type::kU16, Type::kB16}) {
    AddIntegers<std::uint16_t>(table, type);
  }
  for (const Type type : {Type::kU32, Type::kB32}) {
    AddIntegers<std::uint32_t>(table, type);
  }
  for (const Type type : {Type::kU64, Type::kB64}) {
    AddIntegers<std::uint64_t>(table, type);
  }
  AddIntegers<std::int16_t>(table, Type::kS16);
  AddIntegers<std::int32_t>(table, Type::kS32);
  AddIntegers<std::int64_t>(table, Type::kS64);
  AddFloats<float>(table, Type::kF32);
  AddFloats<double>(table, Type::kF64);

  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  using S16 = std::int16_t;
  using S32 = std::int32_t;
  using S64 = std::int64_t;
  table[{"mul.wide", Type::kU16}] = WideProduct<U16, U32, false>;
  table[{"mul.wide", Type::kS16}] = WideProduct<S16, S32, false>;
  table[{"mul.wide", Type::kU32}] = WideProduct<U32, U64, false>;
  table[{"mul.wide", Type::kS32}] = WideProduct<S32, S64, false>;
  table[{"mad.wide", Type::kU16}] = WideProduct<U16, U32, true>;
  table[{"mad.wide", Type::kS16}] = WideProduct<S16, S32, true>;
  table[{"mad.wide", Type::kU32}] = WideProduct<U32, U64, true>;
  table[{"mad.wide", Type::kS32}] = WideProduct<S32, S64, true>;
  table[{"prmt", Type::kB32}] = Arithmetic<U32, Permute>;
  table[{"shf.l", Type::kB32}] = Arithmetic<U32, Funnel<true, false>>;
  table[{"shf.r", Type::kB32}] = Arithmetic<U32, Funnel<false, false>>;
  table[{"shf.l.clamp", Type::kB32}] = Arithmetic<U32, Funnel<true, true>>;
  table[{"shf.r.clamp", Type::kB32}] = Arithmetic<U32, Funnel<false, true>>;

  table[{"rcp.approx", Type::kF32}] = Approximate<kReciprocal>;
  table[{"sqrt.approx", Type::kF32}] = Approximate<kSquareRoot>;
  table[{"rsqrt.approx", Type::kF32}] = Approximate<kInverseRoot>;
  table[{"ex2.approx", Type::kF32}] = Approximate<kExp2>;
  table[{"lg2.approx", Type::kF32}] = Approximate<kLog2>;
  table[{"sin.approx", Type::kF32}] = Approximate<kSin>;
  table[{"cos.approx", Type::kF32}] = Approximate<kCos>;
  table[{"tanh.approx", Type::kF32}] = Approximate<kTanh>;
  table[{"div.approx", Type::kF32}] = ApproximateQuotient;
  table[{"rcp.approx", Type::kF64}] = ApproximateDouble<kReciprocal>;
  table[{"rsqrt.approx", Type::kF64}] = ApproximateDouble<kInverseRoot>;

  table[{"and", Type::kPred}] = OfPredicates<And>;
  table[{"or", Type::kPred}] = OfPredicates<Or>;
  table[{"xor", Type::kPred}] = OfPredicates<Xor>;
  table[{"not", Type::kPred}] = OfPredicates<Not>;
  table[{"mov", Type::kPred}] = OfPredicates<Move>;
  return table;
}

}  // namespace

Handler ArithmeticHandler(const std::string& name, Type type) {
  static const Table& table = *new Table(MakeTable());
  const auto it = table.find({name, type});
  return it == table.end() ? nullptr : it->second;
}

}  // namespace d2l::ptx
