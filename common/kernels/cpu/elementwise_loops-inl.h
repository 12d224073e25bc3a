// Makes a loop of a functor. Included once per kind of vector, inside
// HWY_NAMESPACE's region (see foreach_target.h).

#if defined(D2L_COMMON_KERNELS_CPU_ELEMENTWISE_LOOPS_INL_H_) == \
    defined(HWY_TARGET_TOGGLE)
#ifdef D2L_COMMON_KERNELS_CPU_ELEMENTWISE_LOOPS_INL_H_
#undef D2L_COMMON_KERNELS_CPU_ELEMENTWISE_LOOPS_INL_H_
#else
#define D2L_COMMON_KERNELS_CPU_ELEMENTWISE_LOOPS_INL_H_
#endif

#include <cstdint>

#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/cpu/vector_targets.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace d2l::kernels::cpu {
namespace HWY_NAMESPACE {

// An operand as the loop sees it.
template <typename T>
struct VectorOf {
  explicit VectorOf(const void* p) : data(static_cast<const T*>(p)) {}
  HWY_INLINE T operator[](std::int64_t i) const { return data[i]; }
  const T* data;
};
template <typename T>
struct ScalarOf {
  explicit ScalarOf(const void* p) : value(*static_cast<const T*>(p)) {}
  HWY_INLINE T operator[](std::int64_t) const { return value; }
  T value;
};

template <typename Out, typename F, typename A>
void Loop1(void* out, const void* a, const void*, const void*, std::int64_t n) {
  Out* const to = static_cast<Out*>(out);
  const A x(a);
  const F f{};
  D2L_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) to[i] = f(x[i]);
}

template <typename Out, typename F, typename A, typename B>
void Loop2(void* out, const void* a, const void* b, const void*,
           std::int64_t n) {
  Out* const to = static_cast<Out*>(out);
  const A x(a);
  const B y(b);
  const F f{};
  D2L_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) to[i] = f(x[i], y[i]);
}

template <typename Out, typename F, typename A, typename B, typename C>
void Loop3(void* out, const void* a, const void* b, const void* c,
           std::int64_t n) {
  Out* const to = static_cast<Out*>(out);
  const A x(a);
  const B y(b);
  const C z(c);
  const F f{};
  D2L_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) to[i] = f(x[i], y[i], z[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace d2l::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
