// Each instruction that the project's kernels use, with known values, most of
// them from PTX's manual.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "gtest/gtest.h"
#include "tests/ptx/interpreter_testing.h"
#include "tests/ptx/kernel.h"
#include "tests/ptx/report.h"

namespace d2l::ptx {
namespace {

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr U32 kCanonicalNan = 0x7fffffff;

template <typename T>
auto Bits(T x) {
  std::conditional_t<sizeof(T) == 4, U32, U64> bits;
  std::memcpy(&bits, &x, sizeof(x));
  return bits;
}
// The bits of a result of float.
template <typename... In>
U32 Float(const std::string& instruction, In... in) {
  return Bits(Result<float>(instruction, in...));
}
template <typename... In>
bool Holds(const std::string& comparison, In... in) {
  return Result<U32>(comparison + " p, a, b; selp.u32 d, 1, 0, p;", in...) == 1;
}

TEST(InstructionsTest, AddSubtractMultiply) {
  EXPECT_EQ(Result<U32>("add.s32 d, a, b;", ~0u, 3u), 2u);
  EXPECT_EQ(Result<U16>("add.s16 d, a, b;", U16{65535}, U16{2}), 1);
  EXPECT_EQ(Result<U64>("add.s64 d, a, b;", ~U64{0}, U64{3}), 2u);
  EXPECT_EQ(Result<U32>("sub.s32 d, a, b;", 2u, 3u), ~0u);
  EXPECT_EQ(Result<U64>("sub.s64 d, a, -7;", U64{2}), 9u);
  EXPECT_EQ(Result<U16>("mul.lo.s16 d, a, b;", U16{300}, U16{300}),
            U16{90000 & 65535});
  EXPECT_EQ(Result<U32>("mul.lo.s32 d, a, b;", 1u << 31, 3u), 1u << 31);
  EXPECT_EQ(Result<U64>("mul.hi.u64 d, a, b;", ~U64{0}, ~U64{0}), ~U64{1});
  EXPECT_EQ(Result<U64>("mul.wide.s32 d, a, b;", ~0u, 5u), U64(-5));
  EXPECT_EQ(Result<U64>("mul.wide.u32 d, a, b;", ~0u, 5u), 5 * U64{~0u});
  EXPECT_EQ(Result<U32>("mul.wide.u16 d, a, b;", U16{65535}, U16{5}),
            5u * 65535);
  EXPECT_EQ(Result<U32>("mad.lo.s32 d, a, b, c;", 5u, 6u, 7u), 37u);
}

TEST(InstructionsTest, DividesIntegers) {
  const auto s32 = [](const char* name, int a, int b) {
    return static_cast<int>(
        Result<U32>(std::string(name) + " d, a, b;", U32(a), U32(b)));
  };
  EXPECT_EQ(s32("div.s32", -7, 2), -3);
  EXPECT_EQ(s32("rem.s32", -7, 2), -1);
  // Both would be undefined in C++.
  EXPECT_EQ(s32("div.s32", std::numeric_limits<int>::min(), -1),
            std::numeric_limits<int>::min());
  EXPECT_EQ(s32("div.s32", 7, 0), -1);
  EXPECT_EQ(Result<U32>("div.u32 d, a, b;", ~0u, 2u), ~0u / 2);
  EXPECT_EQ(Result<U32>("rem.u32 d, a, b;", ~0u, 16u), 15u);
  EXPECT_EQ(Result<U64>("div.s64 d, a, b;", U64(-9), U64{2}), U64(-4));
  EXPECT_EQ(Result<U64>("rem.s64 d, a, b;", U64(-9), U64{2}), U64(-1));
  EXPECT_EQ(Result<U64>("div.u64 d, a, b;", U64(-9), U64{2}), U64(-9) / 2);
}

TEST(InstructionsTest, FloatingPointResultsThatAreNan) {
  // A float is the canonical NaN, whatever the operand; a double keeps it.
  const float other = __builtin_bit_cast(float, 0xffc12345u);
  for (const char* const name : {"add.rn.f32", "sub.rn.f32", "mul.rn.f32",
                                 "div.rn.f32", "add.rn.ftz.f32"}) {
    EXPECT_EQ(Float(std::string(name) + " d, a, b;", other, 1.0f),
              kCanonicalNan)
        << name;
  }
  EXPECT_EQ(Float("sub.rn.f32 d, a, b;", kInf, kInf), kCanonicalNan);
  EXPECT_EQ(Float("mul.rn.f32 d, a, b;", kInf, 0.0f), kCanonicalNan);
  EXPECT_EQ(Float("fma.rn.f32 d, a, b, c;", kInf, 0.0f, 1.0f), kCanonicalNan);
  EXPECT_EQ(Float("sqrt.rn.f32 d, a;", -1.0f), kCanonicalNan);
  EXPECT_EQ(Float("min.f32 d, a, b;", other, other), kCanonicalNan);
  EXPECT_EQ(Float("mov.f32 d, a;", other), 0xffc12345u);
  EXPECT_EQ(Float("neg.f32 d, a;", other), 0x7fc12345u);
  const double payload = __builtin_bit_cast(double, U64{0x7ff8123456789abc});
  EXPECT_EQ(Bits(Result<double>("add.rn.f64 d, a, b;", payload, 1.0)),
            0x7ff8123456789abcu);
}

TEST(InstructionsTest, RoundsFloatingPoint) {
  const float tiny = 0x1p-30f;
  EXPECT_EQ(Result<float>("add.rn.f32 d, a, b;", 1.0f, tiny), 1.0f);
  EXPECT_EQ(Result<float>("add.rp.f32 d, a, b;", 1.0f, tiny), 1 + 0x1p-23f);
  EXPECT_EQ(Result<float>("sub.rm.f32 d, a, b;", 1.0f, tiny), 1 - 0x1p-24f);
  EXPECT_EQ(Result<float>("sub.rz.f32 d, a, b;", -1.0f, -tiny), -1 + 0x1p-24f);
  EXPECT_EQ(Result<float>("fma.rm.f32 d, a, b, c;", 1.0f, -tiny, 1.0f),
            1 - 0x1p-24f);
  EXPECT_EQ(Result<double>("add.rp.f64 d, a, b;", 1.0, 0x1p-70), 1 + 0x1p-52);
  // One rounding: the product alone would lose its last bit.
  const float x = 1 + 0x1p-23f;
  EXPECT_EQ(Result<float>("fma.rn.f32 d, a, b, c;", x, x, -1 - 0x1p-22f),
            0x1p-46f);
  EXPECT_EQ(Result<double>("fma.rn.f64 d, a, b, c;", 1 + 0x1p-52, 1 + 0x1p-52,
                           -1 - 0x1p-51),
            0x1p-104);
  EXPECT_EQ(Result<float>("div.rn.f32 d, a, b;", 1.0f, 3.0f), 1.0f / 3);
  EXPECT_EQ(Result<double>("div.rn.f64 d, a, b;", 1.0, 3.0), 1.0 / 3);
  EXPECT_EQ(Result<float>("rcp.rn.f32 d, a;", 3.0f), 1.0f / 3);
  EXPECT_EQ(Result<double>("rcp.rn.f64 d, a;", 3.0), 1.0 / 3);
  EXPECT_EQ(Result<float>("sqrt.rn.f32 d, a;", 2.0f), std::sqrt(2.0f));
  EXPECT_EQ(Result<double>("sqrt.rn.f64 d, a;", 2.0), std::sqrt(2.0));
}

TEST(InstructionsTest, FlushesAndSaturates) {
  const float subnormal = 0x1p-130f;
  EXPECT_EQ(Float("add.rn.ftz.f32 d, a, b;", -subnormal, -0.0f), Bits(-0.0f));
  EXPECT_EQ(Float("mul.rn.ftz.f32 d, a, b;", 0x1p-100f, 0x1p-30f), 0u);
  EXPECT_EQ(Result<float>("mul.rn.f32 d, a, b;", 0x1p-100f, 0x1p-30f),
            subnormal);
  EXPECT_EQ(Result<float>("fma.rn.sat.f32 d, a, b, c;", 2.0f, 3.0f, 4.0f), 1);
  EXPECT_EQ(Float("cvt.sat.f32.f32 d, a;", kNan), 0u);
  EXPECT_EQ(Result<float>("cvt.sat.f32.f32 d, a;", 0.25f), 0.25f);
}

TEST(InstructionsTest, MinimumAndMaximum) {
  EXPECT_EQ(Float("min.f32 d, a, b;", 0.0f, -0.0f), Bits(-0.0f));
  EXPECT_EQ(Float("max.f32 d, a, b;", -0.0f, 0.0f), Bits(0.0f));
  EXPECT_EQ(Float("max.f32 d, a, b;", kNan, 2.0f), Bits(2.0f));
  EXPECT_EQ(Result<double>("min.f64 d, a, b;", 2.0, -3.0), -3.0);
  EXPECT_EQ(Result<U32>("max.s32 d, a, b;", ~0u, 1u), 1u);
  EXPECT_EQ(Result<U32>("min.s32 d, a, b;", ~0u, 1u), ~0u);
  EXPECT_EQ(Result<U64>("max.s64 d, a, b;", ~U64{0}, U64{1}), 1u);
  EXPECT_EQ(Result<U64>("min.s64 d, a, b;", ~U64{0}, U64{1}), ~U64{0});
  EXPECT_EQ(Result<U16>("max.u16 d, a, b;", U16{65535}, U16{1}), 65535);
  EXPECT_EQ(Result<U16>("min.u16 d, a, b;", U16{65535}, U16{1}), 1);
}

TEST(InstructionsTest, Signs) {
  EXPECT_EQ(Float("neg.f32 d, a;", 0.0f), Bits(-0.0f));
  EXPECT_EQ(Result<double>("abs.f64 d, a;", -2.5), 2.5);
  EXPECT_EQ(Result<float>("abs.f32 d, a;", -kInf), kInf);
  EXPECT_EQ(Result<U64>("abs.s64 d, a;", U64(-5)), 5u);
  EXPECT_EQ(Result<U64>("abs.s64 d, a;", U64{1} << 63), U64{1} << 63);
  EXPECT_EQ(Result<U16>("neg.s16 d, a;", U16{1}), 65535);
  EXPECT_EQ(Result<U64>("neg.s64 d, a;", U64{1}), ~U64{0});
  EXPECT_EQ(Result<double>("neg.f64 d, a;", 1.0), -1.0);
}

TEST(InstructionsTest, BitsAndShifts) {
  EXPECT_EQ(Result<U32>("and.b32 d, a, b;", 12u, 10u), 8u);
  EXPECT_EQ(Result<U64>("or.b64 d, a, b;", U64{12}, U64{10}), 14u);
  EXPECT_EQ(Result<U16>("xor.b16 d, a, b;", U16{12}, U16{10}), 6);
  EXPECT_EQ(Result<U32>("not.b32 d, a;", 1u), ~1u);
  EXPECT_EQ(Result<U32>("shl.b32 d, a, b;", 1u, 31u), 1u << 31);
  EXPECT_EQ(Result<U32>("shl.b32 d, a, b;", 1u, 32u), 0u);
  EXPECT_EQ(Result<U16>("shl.b16 d, a, b;", U16{3}, 15u), 32768);
  EXPECT_EQ(Result<U64>("shl.b64 d, a, b;", U64{1}, 63u), U64{1} << 63);
  EXPECT_EQ(Result<U32>("shr.s32 d, a, b;", 1u << 31, 40u), ~0u);
  EXPECT_EQ(Result<U64>("shr.s64 d, a, b;", U64(-8), 1u), U64(-4));
  EXPECT_EQ(Result<U32>("shr.u32 d, a, b;", 1u << 31, 31u), 1u);
  EXPECT_EQ(Result<U64>("shr.u64 d, a, b;", U64(-8), 64u), 0u);
  EXPECT_EQ(Result<U16>("shr.u16 d, a, b;", U16{256}, 8u), 1);
  EXPECT_EQ(
      Result<U32>("prmt.b32 d, a, b, c;", 0x33221100u, 0x77665544u, 0x7340u),
      0x77334400u);
  // The high bit of a selector repeats the byte's sign.
  EXPECT_EQ(Result<U32>("prmt.b32 d, a, b, c;", 0x8000u, 0u, 0x9989u),
            0xffff00ffu);
  EXPECT_EQ(Result<U32>("bfi.b32 d, a, b, 8, 4;", 0xffu, 0u), 0xf00u);
  EXPECT_EQ(Result<U64>("bfi.b64 d, a, b, 60, 8;", U64{0xff}, U64{1}),
            0xf000000000000001u);
  EXPECT_EQ(Result<U32>("bfe.u32 d, a, 4, 8;", 0xabcdu), 0xbcu);
  EXPECT_EQ(Result<U32>("bfe.s32 d, a, 28, 8;", 0x80000000u), 0xfffffff8u);
  EXPECT_EQ(Result<U32>("popc.b32 d, a;", 0xf0f0u), 8u);
  EXPECT_EQ(Result<U32>("clz.b64 d, a;", U64{1}), 63u);
  EXPECT_EQ(Result<U32>("clz.b32 d, a;", 0u), 32u);
  EXPECT_EQ(Result<U32>("brev.b32 d, a;", 1u), 1u << 31);
  EXPECT_EQ(Result<U32>("shf.l.wrap.b32 d, a, b, c;", 0x80000000u, 1u, 33u),
            3u);
  EXPECT_EQ(Result<U32>("shf.r.clamp.b32 d, a, b, c;", 1u, 5u, 40u), 5u);
}

TEST(InstructionsTest, Compares) {
  EXPECT_TRUE(Holds("setp.lt.s32", ~0u, 0u));
  EXPECT_FALSE(Holds("setp.lt.u32", ~0u, 0u));
  EXPECT_TRUE(Holds("setp.gt.u16", U16{65535}, U16{0}));
  EXPECT_FALSE(Holds("setp.gt.s16", U16{65535}, U16{0}));
  EXPECT_TRUE(Holds("setp.ge.s64", U64{3}, U64{3}));
  EXPECT_TRUE(Holds("setp.ne.s64", U64{3}, U64{4}));
  EXPECT_TRUE(Holds("setp.eq.b32", 3u, 3u));
  // With NaN: the ordered comparisons are false, the others true.
  for (const char* const name : {"eq", "ne", "lt", "le", "gt", "ge", "num"}) {
    EXPECT_FALSE(Holds(std::string("setp.") + name + ".f32", kNan, 1.0f))
        << name;
  }
  for (const char* const name :
       {"equ", "neu", "ltu", "leu", "gtu", "geu", "nan"}) {
    EXPECT_TRUE(Holds(std::string("setp.") + name + ".f64", 1.0,
                      std::numeric_limits<double>::quiet_NaN()))
        << name;
  }
  EXPECT_FALSE(Holds("setp.neu.f32", 1.0f, 1.0f));
  EXPECT_TRUE(Holds("setp.leu.f32", 1.0f, 1.0f));
  EXPECT_TRUE(Holds("setp.eq.f32", 0.0f, -0.0f));
  EXPECT_TRUE(Holds("setp.eq.ftz.f32", 0x1p-130f, 0.0f));
}

TEST(InstructionsTest, PredicatesAndSelection) {
  const char* const select = " selp.u32 d, 1, 0, p;";
  const std::string both = "setp.eq.u32 p, a, 1; setp.eq.u32 q, b, 1;";
  const auto of = [&](const std::string& operation, U32 a, U32 b) {
    return Result<U32>(both + operation + select, a, b);
  };
  EXPECT_EQ(of("and.pred p, p, q;", 1, 1), 1u);
  EXPECT_EQ(of("and.pred p, p, q;", 1, 0), 0u);
  EXPECT_EQ(of("or.pred p, p, q;", 0, 1), 1u);
  EXPECT_EQ(of("xor.pred p, p, q;", 1, 1), 0u);
  EXPECT_EQ(of("not.pred p, q;", 1, 0), 1u);
  EXPECT_EQ(of("and.pred p, p, !q;", 1, 0), 1u);
  EXPECT_EQ(of("mov.pred p, -1;", 0, 0), 1u);
  EXPECT_EQ(of("setp.ne.or.u32 p, a, 0, q;", 0, 1), 1u);
  EXPECT_EQ(of("setp.ne.and.u32 p, a, 0, !q;", 1, 1), 0u);
  EXPECT_EQ(
      Result<double>("setp.lt.f64 p, a, b; selp.f64 d, a, b, p;", 3.0, 2.0),
      2.0);
  EXPECT_EQ(
      Result<U32>("setp.eq.u32 p, a, 1; mov.u32 d, 5; @!p mov.u32 d, 6;", 1u),
      5u);
}

TEST(InstructionsTest, ConvertsIntegers) {
  EXPECT_EQ(Result<U64>("cvt.s64.s32 d, a;", ~0u), ~U64{0});
  EXPECT_EQ(Result<U64>("cvt.u64.u32 d, a;", ~0u), U64{~0u});
  EXPECT_EQ(Result<U32>("cvt.u32.u64 d, a;", U64{5} << 31), 1u << 31);
  EXPECT_EQ(Result<U16>("cvt.u16.u32 d, a;", 65537u), 1);
  EXPECT_EQ(Result<U32>("cvt.u32.u16 d, a;", U16{65535}), 65535u);
  // From the lower part of a register, and into a wider one.
  EXPECT_EQ(Result<U32>("cvt.s32.s8 d, a;", 0x1ffu), ~0u);
  EXPECT_EQ(Result<U32>("cvt.u32.u8 d, a;", 0x1ffu), 255u);
  EXPECT_EQ(Result<U16>("cvt.u8.u32 d, a;", 0x1ffu), 255);
  EXPECT_EQ(Result<U32>("cvt.sat.s8.s32 d, a;", 1000u), 127u);
}

TEST(InstructionsTest, ConvertsFloatingPoint) {
  const auto s32 = [](const char* mode, float x) {
    return static_cast<int>(
        Result<U32>("cvt." + std::string(mode) + ".s32.f32 d, a;", x));
  };
  EXPECT_EQ(s32("rzi", -2.5f), -2);
  EXPECT_EQ(s32("rmi", -2.5f), -3);
  EXPECT_EQ(s32("rpi", 2.25f), 3);
  EXPECT_EQ(s32("rni", 2.5f), 2);
  EXPECT_EQ(s32("rzi", 3e9f), std::numeric_limits<int>::max());
  EXPECT_EQ(s32("rzi", -kInf), std::numeric_limits<int>::min());
  EXPECT_EQ(s32("rzi", kNan), 0);
  EXPECT_EQ(Result<U32>("cvt.rzi.u32.f32 d, a;", -1.0f), 0u);
  EXPECT_EQ(Result<U64>("cvt.rzi.s64.f32 d, a;", kNan), U64{1} << 63);
  EXPECT_EQ(Result<U32>("cvt.rzi.s32.f64 d, a;",
                        std::numeric_limits<double>::quiet_NaN()),
            1u << 31);
  EXPECT_EQ(Result<U64>("cvt.rzi.s64.f64 d, a;", 1e19), ~(U64{1} << 63));
  EXPECT_EQ(Result<float>("cvt.rn.f32.s64 d, a;", (U64{1} << 24) + 1), 0x1p24f);
  EXPECT_EQ(Result<float>("cvt.rp.f32.s32 d, a;", (1u << 24) + 1), 0x1p24f + 2);
  EXPECT_EQ(Result<double>("cvt.rn.f64.s64 d, a;", U64(-3)), -3.0);
  EXPECT_EQ(Result<double>("cvt.rn.f64.u16 d, a;", U16{65535}), 65535.0);
  EXPECT_EQ(Result<double>("cvt.f64.f32 d, a;", 1.5f), 1.5);
  EXPECT_EQ(Result<float>("cvt.rn.f32.f64 d, a;", 1 + 0x1p-30), 1.0f);
  EXPECT_EQ(Result<float>("cvt.rp.f32.f64 d, a;", 1 + 0x1p-30), 1 + 0x1p-23f);
  EXPECT_EQ(Result<float>("cvt.rmi.f32.f32 d, a;", -1.5f), -2.0f);
  EXPECT_EQ(Result<double>("cvt.rzi.f64.f64 d, a;", -1.5), -1.0);
}

TEST(InstructionsTest, MovesBetweenWidths) {
  EXPECT_EQ(Result<U64>("mov.b64 d, {a, b};", 1u, 2u), (U64{2} << 32) + 1);
  EXPECT_EQ(Result<U32>("mov.b64 {r, d}, a;", (U64{2} << 32) + 1), 2u);
  EXPECT_EQ(Result<U32>("mov.b32 d, {a, b};", U16{1}, U16{2}), 0x20001u);
  EXPECT_EQ(Result<U32>("mov.b32 d, a;", 1.0f), 0x3f800000u);
  EXPECT_EQ(Result<float>("mov.f32 d, 0fBF800000;"), -1.0f);
  EXPECT_EQ(Result<double>("mov.f64 d, 0d4000000000000000;"), 2.0);
}

TEST(InstructionsTest, ApproximationsStayWithinTheirErrors) {
  struct Case {
    const char* instruction;
    float x;
    double exact;
    double error;
  };
  const double x = 0.3f;
  const Case cases[] = {
      {"ex2.approx.ftz.f32", 0.3f, std::exp2(x), std::exp2(x) * 0x1p-22},
      {"lg2.approx.f32", 0.3f, std::log2(x), 0x1p-21},
      {"rcp.approx.f32", 0.3f, 1 / x, 1 / x * 0x1p-22},
      {"rsqrt.approx.f32", 0.3f, 1 / std::sqrt(x), 0x1p-21},
      {"sqrt.approx.f32", 0.3f, std::sqrt(x), 0x1p-22},
      {"sin.approx.f32", 0.3f, std::sin(x), 0x1p-20},
      {"cos.approx.f32", 0.3f, std::cos(x), 0x1p-20},
      {"tanh.approx.f32", 0.3f, std::tanh(x), 0x1p-10},
  };
  const Settings before = TheSettings();
  for (const Case& each : cases) {
    const std::string text = std::string(each.instruction) + " d, a;";
    const float exact = Result<float>(text, each.x);
    EXPECT_EQ(exact, static_cast<float>(each.exact)) << text;
    int moved = 0;
    Settings settings = before;
    for (settings.perturb = 1; settings.perturb <= 20; ++settings.perturb) {
      SetSettings(settings);
      const float got = Result<float>(text, each.x);
      EXPECT_NEAR(got, each.exact, each.error) << text;
      moved += got != exact;
    }
    EXPECT_GT(moved, 0) << text;
    SetSettings(before);
  }
  // Of the upper 32 bits, in both directions.
  EXPECT_EQ(Bits(Result<double>("rcp.approx.ftz.f64 d, a;", 3.0)),
            0x3fd5555500000000u);
}

}  // namespace
}  // namespace d2l::ptx
