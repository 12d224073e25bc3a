// Whether products of float32 may be computed in TF32.
//
//   SetAllowTf32(true);
//   Tensor c = MatMul(a, b);  // on a GPU: several times as fast, and coarser
//
// TF32 is a format of the tensor cores of GPUs from sm_80 on: both factors are
// rounded to a 10-bit mantissa, where float32 has 23 bits, before they are
// multiplied; sums are in float32. CPU devices, float64, and the products and
// convolutions that IsSmallProduct and IsImplicit name (gemm_call.h and
// implicit_conv.h in common/kernels/cuda/index) do not use TF32.
//
// Off at first, as in PyTorch. It is read when a product is requested. Any
// thread may call these.

#ifndef D2L_COMMON_KERNELS_TF32_H_
#define D2L_COMMON_KERNELS_TF32_H_

#include <atomic>

namespace d2l {

namespace internal {
inline std::atomic<bool> allow_tf32{false};
}  // namespace internal

inline bool AllowTf32() {
  return internal::allow_tf32.load(std::memory_order_relaxed);
}

inline void SetAllowTf32(bool allow) {
  internal::allow_tf32.store(allow, std::memory_order_relaxed);
}

}  // namespace d2l

#endif  // D2L_COMMON_KERNELS_TF32_H_
