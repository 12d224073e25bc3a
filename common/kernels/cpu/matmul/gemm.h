// One matrix product, computed by the cores of the device whose operation calls
// it (common/device/cpu/parallel_for.h), on other threads by the caller alone.
//
//   Gemm<float>({false, false, 2, 3, 4, a, 4, b, 3, c, 3});
//
// The arguments are as in MatMulArgs (kernels.h), without the batch.
//
// An element of c depends on its row of a and its column of b, and on nothing
// else: any block of c, computed alone, has the same bits as in the whole. The
// products of each kGemmDepth elements are added up from the first to the
// last, and then these sums. A multiplication and the addition that follows
// round once where the machine has an instruction for it, else twice.
//
// Thread-safety: any thread may call Gemm; each keeps about a megabyte for its
// next call. Throws std::bad_alloc if it cannot get that.

#ifndef D2L_COMMON_KERNELS_CPU_MATMUL_GEMM_H_
#define D2L_COMMON_KERNELS_CPU_MATMUL_GEMM_H_

#include <cstdint>

namespace d2l::kernels::cpu {

inline constexpr std::int64_t kGemmDepth = 384;

// The work that is worth another core's while, in multiplications: half of a
// 100 x 100 product.
inline constexpr std::int64_t kGemmGrain = 500'000;

template <typename T>
struct GemmArgs {
  bool transpose_a;
  bool transpose_b;
  std::int64_t m, n, k;
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T* c;
  std::int64_t ldc;
  bool accumulate = false;  // adds the product to what is in c
};

// T is float or double.
template <typename T>
void Gemm(const GemmArgs<T>& args);

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_MATMUL_GEMM_H_
