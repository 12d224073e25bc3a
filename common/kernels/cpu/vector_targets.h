// Excludes kinds of vector: the kernels are compiled for all that Highway has
// but those named here. Include it before any header of Highway. It also
// defines D2L_INDEPENDENT, for a loop whose output may be an input's memory,
// element for element:
//   D2L_INDEPENDENT
//   for (std::int64_t i = 0; i < n; ++i) out[i] = f(in[i]);
//
// The compiler then need not compare addresses before it makes vectors of it.

#ifndef D2L_COMMON_KERNELS_CPU_VECTOR_TARGETS_H_
#define D2L_COMMON_KERNELS_CPU_VECTOR_TARGETS_H_

#ifdef __clang__
#define D2L_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define D2L_INDEPENDENT _Pragma("GCC ivdep")
#endif

// SSSE3 (hardly a processor stops there) and AVX3_DL (no kernel uses what it
// adds to AVX3) would make every kernel compile half as long again. A vector of
// SVE has no size that the compiler knows, so it cannot be an element of an
// array; NEON's vectors are as wide on most processors that have SVE.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#ifdef HIGHWAY_HWY_DETECT_TARGETS_H_
#error "include vector_targets.h before any header of Highway"
#endif

#endif  // D2L_COMMON_KERNELS_CPU_VECTOR_TARGETS_H_
