// CUDA's vector types, aligned as CUDA aligns them, and dim3:
//
//   const float4 v = reinterpret_cast<const float4*>(x)[i];
//   y[i] = make_float2(v.x + v.y, v.z + v.w);
//
// As in CUDA, they have no arithmetic. Included by words.h.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_VECTORS_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_VECTORS_H_

#define D2L_VECTORS(name, T)                                            \
  struct name##1 {                                                      \
    T x;                                                                \
  };                                                                    \
  struct alignas(2 * sizeof(T)) name##2 {                               \
    T x, y;                                                             \
  };                                                                    \
  struct name##3 {                                                      \
    T x, y, z;                                                          \
  };                                                                    \
  struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) name##4 {          \
    T x, y, z, w;                                                       \
  };                                                                    \
  constexpr name##1 make_##name##1(T x) { return {x}; }                 \
  constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

// NOLINTBEGIN(google-runtime-int): as CUDA's
D2L_VECTORS(char, signed char)
D2L_VECTORS(uchar, unsigned char)
D2L_VECTORS(short, short)
D2L_VECTORS(ushort, unsigned short)
D2L_VECTORS(int, int)
D2L_VECTORS(uint, unsigned)
D2L_VECTORS(longlong, long long)
D2L_VECTORS(ulonglong, unsigned long long)
D2L_VECTORS(float, float)
D2L_VECTORS(double, double)
// NOLINTEND(google-runtime-int)
#undef D2L_VECTORS

struct dim3 {
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)  // NOLINT: as CUDA's
      : x(x), y(y), z(z) {}
  dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}     // NOLINT: as CUDA's
  operator uint3() const { return {x, y, z}; }  // NOLINT: as CUDA's
  unsigned x, y, z;
};

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_VECTORS_H_
