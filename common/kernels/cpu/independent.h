// D2L_INDEPENDENT: before a loop whose output may be an input's memory, element
// for element.
//
//   D2L_INDEPENDENT
//   for (std::int64_t i = 0; i < n; ++i) out[i] = f(in[i]);
//
// The compiler then need not compare addresses before it makes vectors of it.

#ifndef D2L_COMMON_KERNELS_CPU_INDEPENDENT_H_
#define D2L_COMMON_KERNELS_CPU_INDEPENDENT_H_

#ifdef __clang__
#define D2L_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define D2L_INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif  // D2L_COMMON_KERNELS_CPU_INDEPENDENT_H_
