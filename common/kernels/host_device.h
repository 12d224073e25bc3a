// Marks a function for both the CPU and the GPU.
//
//   D2L_HOST_DEVICE inline float Twice(float x) { return 2 * x; }
//
// Empty for a C++ compiler. A marked function must be thread-safe, must not
// throw, and reads constexpr scalars only, no arrays but its own.

#ifndef D2L_COMMON_KERNELS_HOST_DEVICE_H_
#define D2L_COMMON_KERNELS_HOST_DEVICE_H_

#ifdef __CUDACC__
#define D2L_HOST_DEVICE __host__ __device__
#else
#define D2L_HOST_DEVICE
#endif

#endif  // D2L_COMMON_KERNELS_HOST_DEVICE_H_
