// CUDA's functions of numbers that C++ does not have:
//
//   y[i] = max(0, x[i]) * rsqrtf(variance + 1e-5f);
//   const int lowest = __ffs(lanes) - 1;
//
// Those that a GPU approximates are exact to the last bit or so: a kernel's
// values differ a little on a GPU. Included by words.h.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_MATH_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_MATH_H_

#include <math.h>  // isnan and the like, as kernels write them, without std::

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace d2l::kernels::cuda::internal {

template <typename To, typename From>
To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

// As the GPU's conversions: NaN becomes 0, what is too large the nearest.
template <typename To>
To Convert(double whole) {
  constexpr To kMin = std::is_signed_v<To> ? To(1) << (sizeof(To) * 8 - 1) : 0;
  constexpr To kMax = ~kMin;
  if (std::isnan(whole)) return 0;
  if (whole <= static_cast<double>(kMin)) return kMin;
  if (whole >= static_cast<double>(kMax)) return kMax;
  return static_cast<To>(whole);
}

// CUDA has min and max of two integers of one size, and of any two floats.
template <typename T>
using Promoted = decltype(+T{});
template <typename A, typename B>
using Common =
    std::enable_if_t<(std::is_integral_v<A> && std::is_integral_v<B> &&
                      sizeof(Promoted<A>) == sizeof(Promoted<B>)) ||
                         (std::is_floating_point_v<A> &&
                          std::is_floating_point_v<B>),
                     std::common_type_t<Promoted<A>, Promoted<B>>>;

}  // namespace d2l::kernels::cuda::internal

// Of a NaN and a number, the number.
template <typename A, typename B>
constexpr d2l::kernels::cuda::internal::Common<A, B> min(A a, B b) {
  using T = d2l::kernels::cuda::internal::Common<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  return y < x || x != x ? y : x;
}
template <typename A, typename B>
constexpr d2l::kernels::cuda::internal::Common<A, B> max(A a, B b) {
  using T = d2l::kernels::cuda::internal::Common<A, B>;
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  return x < y || x != x ? y : x;
}

// NOLINTBEGIN(google-runtime-int): as CUDA's
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float rsqrtf(float x) { return static_cast<float>(rsqrt(double{x})); }
inline float rcbrtf(float x) { return 1 / std::cbrt(x); }
inline float norm3df(float x, float y, float z) { return std::hypot(x, y, z); }
inline void sincospif(float x, float* sin, float* cos) {
  *sin = static_cast<float>(std::sin(M_PI * x));
  *cos = static_cast<float>(std::cos(M_PI * x));
}
inline float sinpif(float x) { return static_cast<float>(std::sin(M_PI * x)); }
inline float cospif(float x) { return static_cast<float>(std::cos(M_PI * x)); }
inline float normcdff(float x) {
  return static_cast<float>(std::erfc(-x * M_SQRT1_2) / 2);
}

inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.f, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __log10f(float x) { return std::log10(x); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanf(float x) { return std::tan(x); }
inline void __sincosf(float x, float* sin, float* cos) {
  *sin = std::sin(x);
  *cos = std::cos(x);
}
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

// Rounded to the nearest, and never joined to one instruction with others.
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }
inline double __fma_rn(double x, double y, double z) {
  return std::fma(x, y, z);
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long reversed = 0;
  for (int i = 0; i < 64; ++i) reversed |= (x >> i & 1) << (63 - i);
  return reversed;
}
inline unsigned __brev(unsigned x) {
  return static_cast<unsigned>(__brevll(x) >> 32);
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{y} << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned byte = selector >> (4 * i) & 7;
    result |= static_cast<unsigned>(bytes >> (8 * byte) & 0xff) << (8 * i);
  }
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<unsigned>((both << (shift & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = std::uint64_t{high} << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31));
}
inline int __mulhi(int x, int y) {
  return static_cast<int>((std::int64_t{x} * y) >> 32);
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>((std::uint64_t{x} * y) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long x,
                                     unsigned long long y) {
  return static_cast<unsigned long long>((static_cast<__uint128_t>(x) * y) >>
                                         64);
}
inline unsigned __usad(unsigned x, unsigned y, unsigned z) {
  return (x < y ? y - x : x - y) + z;
}
inline unsigned __sad(int x, int y, unsigned z) {
  return (x < y ? static_cast<unsigned>(y) - static_cast<unsigned>(x)
                : static_cast<unsigned>(x) - static_cast<unsigned>(y)) +
         z;
}

inline int __float_as_int(float x) {
  return d2l::kernels::cuda::internal::Bits<int>(x);
}
inline unsigned __float_as_uint(float x) {
  return d2l::kernels::cuda::internal::Bits<unsigned>(x);
}
inline float __int_as_float(int x) {
  return d2l::kernels::cuda::internal::Bits<float>(x);
}
inline float __uint_as_float(unsigned x) {
  return d2l::kernels::cuda::internal::Bits<float>(x);
}
inline long long __double_as_longlong(double x) {
  return d2l::kernels::cuda::internal::Bits<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return d2l::kernels::cuda::internal::Bits<double>(x);
}
// To the nearest, towards zero, down and up.
#define D2L_CONVERSIONS(name, To)                                          \
  inline To __float2##name##_rn(float x) {                                 \
    return d2l::kernels::cuda::internal::Convert<To>(std::nearbyint(x));   \
  }                                                                        \
  inline To __float2##name##_rz(float x) {                                 \
    return d2l::kernels::cuda::internal::Convert<To>(std::trunc(x));       \
  }                                                                        \
  inline To __float2##name##_rd(float x) {                                 \
    return d2l::kernels::cuda::internal::Convert<To>(std::floor(x));       \
  }                                                                        \
  inline To __float2##name##_ru(float x) {                                 \
    return d2l::kernels::cuda::internal::Convert<To>(std::ceil(x));        \
  }                                                                        \
  inline To __double2##name##_rn(double x) {                               \
    return d2l::kernels::cuda::internal::Convert<To>(std::nearbyint(x));   \
  }                                                                        \
  inline To __double2##name##_rz(double x) {                               \
    return d2l::kernels::cuda::internal::Convert<To>(std::trunc(x));       \
  }                                                                        \
  inline float __##name##2float_rn(To x) { return static_cast<float>(x); } \
  inline double __##name##2double_rn(To x) { return static_cast<double>(x); }
D2L_CONVERSIONS(int, int)
D2L_CONVERSIONS(uint, unsigned)
D2L_CONVERSIONS(ll, long long)
D2L_CONVERSIONS(ull, unsigned long long)
#undef D2L_CONVERSIONS
inline float __double2float_rn(double x) { return static_cast<float>(x); }
// NOLINTEND(google-runtime-int)

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_MATH_H_
